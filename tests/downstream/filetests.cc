// The filetests of a stranger's project.
// <page>
#include <heddle/testing.h>

HEDDLE_FILETESTS(Doubled, FILETESTS);
// </page>
