// The filetests of a stranger's project.
#include <heddle/testing.h>

HEDDLE_FILETESTS(Doubled, FILETESTS);
