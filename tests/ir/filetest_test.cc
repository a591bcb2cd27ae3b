// Runs tests/filetests/. The runner has tests of its own in tests/runtime/testing/.
#include <heddle/testing.h>

HEDDLE_FILETESTS(Filetest, HEDDLE_TEST_DATA_DIR "/filetests");
