// A library whose loading fails with an exception.
#include <stdexcept>

namespace {

int fail() { throw std::runtime_error("no luck today"); }
const int failing = fail();

}  // namespace

int throwing_plugin() { return failing; }
