// The heddle command: shows, runs and checks kernels. `heddle --help` has the rest.
#include "heddle/tools/command_line.h"

int main(int argc, char** argv) { return heddle::tools::run_command_line(argc, argv); }
