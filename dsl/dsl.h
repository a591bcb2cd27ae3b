// All of the kernel language: what a file that defines kernels includes. heddle/heddle.h adds what
// launches them.
#pragma once

#include "heddle/dsl/async.h"
#include "heddle/dsl/atomic.h"
#include "heddle/dsl/builtins.h"
#include "heddle/dsl/cluster.h"
#include "heddle/dsl/complex.h"
#include "heddle/dsl/control.h"
#include "heddle/dsl/debug.h"
#include "heddle/dsl/fast_math.h"
#include "heddle/dsl/inline_ptx.h"
#include "heddle/dsl/integer.h"
#include "heddle/dsl/kernel.h"
#include "heddle/dsl/math.h"
#include "heddle/dsl/mbarrier.h"
#include "heddle/dsl/reduce.h"
#include "heddle/dsl/rounding.h"
#include "heddle/dsl/scan.h"
#include "heddle/dsl/value.h"
#include "heddle/dsl/var.h"
#include "heddle/dsl/vec.h"
#include "heddle/dsl/view.h"
