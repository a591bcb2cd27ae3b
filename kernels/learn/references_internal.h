// What the operations of this folder should compute (entries.cc).
#pragma once

#include "heddle/kernels/reference_internal.h"

namespace heddle::learn::reference {

using kernels::Outputs, kernels::Tensors;

Outputs saxpy(const Settings&, const Tensors&);
Outputs transpose(const Settings&, const Tensors&);
Outputs histogram(const Settings&, const Tensors&);  // of bytes, and of 16-bit values
Outputs cluster_histogram(const Settings&, const Tensors&);
Outputs nbody(const Settings&, const Tensors&);
Outputs mandelbrot(const Settings&, const Tensors&);
Outputs black_scholes(const Settings&, const Tensors&);
Outputs bitonic_sort(const Settings&, const Tensors&);
Outputs scan(const Settings&, const Tensors&);
Outputs spmv(const Settings&, const Tensors&);
Outputs monte_carlo_pi(const Settings&, const Tensors&);
Outputs stencil(const Settings&, const Tensors&);
Outputs tv_add(const Settings&, const Tensors&);
Outputs swap_heads(const Settings&, const Tensors&);

}  // namespace heddle::learn::reference
