"""Row kernels in Triton, a row a program, as its tutorials do it: what a user of Triton would write first. The number of warps
is tuned over. By operation, a function of settings and sizes that gives a function of torch's tensors."""
import torch
import triton
import triton.language as tl

WARPS = [triton.Config({}, num_warps=warps) for warps in (4, 8, 16, 32)]
MOST_COLUMNS = 65536


@triton.autotune(WARPS, key=["columns"])
@triton.jit
def _softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * columns + at, (e / tl.sum(e, 0)).to(y.dtype.element_ty), mask=at < columns)


@triton.autotune(WARPS, key=["columns"])
@triton.jit
def _rms_norm(x, w, y, eps, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, mask=at < columns, other=0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v, 0) / columns + eps)
    weight = tl.load(w + at, mask=at < columns, other=0).to(tl.float32)
    tl.store(y + row * columns + at, (v * scale * weight).to(y.dtype.element_ty), mask=at < columns)


@triton.autotune(WARPS, key=["columns"])
@triton.jit
def _layer_norm(x, w, b, y, eps, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, mask=at < columns, other=0).to(tl.float32)
    d = tl.where(at < columns, v - tl.sum(v, 0) / columns, 0.0)
    scale = tl.rsqrt(tl.sum(d * d, 0) / columns + eps)
    weight = tl.load(w + at, mask=at < columns, other=0).to(tl.float32)
    bias = tl.load(b + at, mask=at < columns, other=0).to(tl.float32)
    tl.store(y + row * columns + at, (d * scale * weight + bias).to(y.dtype.element_ty), mask=at < columns)


@triton.autotune(WARPS, key=["columns"])
@triton.jit
def _cross_entropy(x, target, loss, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    most = tl.max(v, 0)
    chosen = tl.load(x + row * columns + tl.load(target + row)).to(tl.float32)
    tl.store(loss + row, most + tl.log(tl.sum(tl.exp(v - most), 0)) - chosen)


@triton.jit
def _add(a, b, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(a + at, mask=at < count) + tl.load(b + at, mask=at < count), mask=at < count)


def _rows(sizes):
    if sizes["columns"] > MOST_COLUMNS:
        raise NotImplementedError(f"a program's row has at most {MOST_COLUMNS} elements")
    return (sizes["rows"],), sizes["columns"], triton.next_power_of_2(sizes["columns"])


def softmax(settings, sizes):
    grid, columns, block = _rows(sizes)

    def function(x, y):
        _softmax[grid](x, y, columns, BLOCK=block)
        return y
    return function


def rms_norm(settings, sizes):
    grid, columns, block = _rows(sizes)
    eps = float(settings["eps"])

    def function(x, w, y):
        _rms_norm[grid](x, w, y, eps, columns, BLOCK=block)
        return y
    return function


def layer_norm(settings, sizes):
    grid, columns, block = _rows(sizes)
    eps = float(settings["eps"])

    def function(x, w, b, y):
        _layer_norm[grid](x, w, b, y, eps, columns, BLOCK=block)
        return y
    return function


def cross_entropy(settings, sizes):
    grid, columns, block = _rows(sizes)

    def function(x, target, loss):
        _cross_entropy[grid](x, target, loss, columns, BLOCK=block)
        return loss
    return function


def add(settings, sizes):
    count = sizes["rows"] * sizes["columns"]

    def function(a, b, y):
        _add[(triton.cdiv(count, 4096),)](a, b, y, count, BLOCK=4096, num_warps=8)
        return y
    return function


KERNELS = {"softmax": softmax, "rms_norm": rms_norm, "layer_norm": layer_norm, "cross_entropy": cross_entropy, "add": add}
