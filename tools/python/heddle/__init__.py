"""Heddle's GPU kernels on the tensors of torch, CuPy, NumPy, JAX and whatever else speaks DLPack.

    import heddle
    y = heddle.softmax(x)                          # x: a CUDA tensor of torch; on torch's current stream
    y, total = heddle.add_rms_norm(x, residual, w, eps=1e-5)
    values, indices = heddle.topk(x, k=16)
    heddle.softmax(x, y=out)                       # into memory that is there

Every operation that `heddle list` names is a function here: its inputs by position or by name, its settings by name. Element types are
those of the inputs. What it writes is allocated as the inputs are, and returned, unless it is given by name. Matrices are rows by columns:
of a tensor with more modes the leading ones are rows. Arrays on the host (NumPy's, JAX's, anything with a buffer) run in the interpreter, which
checks every access. Arrays with __dlpack__ come from any library, and results go back to it (heddle/dlpack.py): a call on such arrays of a GPU
waits until it is complete. heddle.torch has the operations as torch's own, with gradients and for torch.compile.

A call is compiled when it is first made for some shapes, strides and settings; heddle.warm_up(path) compiles those that an earlier process
has recorded with HEDDLE_RECORD=path in its environment. Errors are HeddleError.
"""
from heddle.dlpack import Array
from heddle.library import HeddleError, Library, shared, warm_up
from heddle.operation import Operation, operation, operations

__all__ = ["Array", "HeddleError", "Library", "Operation", "operation", "operations", "shared", "warm_up"]


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        found = operation(name)
    except HeddleError as error:
        raise AttributeError(f"module 'heddle' has no attribute '{name}': {error}") from None
    globals()[name] = found  # the next one need not ask
    return found


def __dir__():
    return sorted([*globals(), *operations()])
