// A library that is no PTX compiler.
extern "C" int other_library() { return 0; }
