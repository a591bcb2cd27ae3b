"""softmax of rows that fit a block, in Triton, for python_overhead.py. (Triton reads kernels from files.)"""
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, columns, pitch, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    places = tl.arange(0, BLOCK)
    values = tl.load(x + row * pitch + places, mask=places < columns, other=-float("inf"))
    exps = tl.exp(values - tl.max(values))
    tl.store(y + row * pitch + places, exps / tl.sum(exps), mask=places < columns)


def softmax(x):
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](x, y, x.shape[1], x.stride(0), BLOCK=128)
    return y
