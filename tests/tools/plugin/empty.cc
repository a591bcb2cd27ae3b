// A library that registers no kernel.
extern "C" int empty_plugin() { return 0; }
