// Everything that a program needs to define kernels and run them.
//
//   #include <heddle/heddle.h>
//   using namespace heddle;
//
// A file that only defines kernels compiles faster with <heddle/dsl/dsl.h>.
#pragma once

#include "heddle/dsl/dsl.h"
#include "heddle/runtime/buffer.h"
#include "heddle/runtime/device.h"
#include "heddle/runtime/device_array.h"
#include "heddle/runtime/dtype.h"
#include "heddle/runtime/launch.h"
#include "heddle/runtime/stream.h"
