"""What the tensors of each framework have in common: element types, shapes, addresses, streams; and how one is made.

A kind of arrays has: has(x), whether x is of it; describe(x) -> Described; empty(x, shape, dtype), an array beside x; reshaped(x, shape), a view or
else a copy; stream(x), a number; and staged: whether memory of the device must be filled from it first, and read back. dlpack.py has the kinds
of arrays whose library is not known here."""
import dataclasses
import functools
import struct
import sys

try:
    from heddle._calls import Calls  # native/calls.cc
except ImportError:
    Calls = None


class HeddleError(Exception):
    """What Heddle says of a call that failed."""


def fail(text):
    raise HeddleError(text)


@dataclasses.dataclass
class Described:
    dtype: str          # as Heddle calls it
    shape: tuple
    strides: tuple      # in elements
    address: int        # of the first element; of a host array, of its bytes
    device: str         # "cuda:0", "interp"


def row_major(extents):
    """The strides of a tensor without gaps."""
    strides, step = [], 1
    for extent in reversed(extents):
        strides.insert(0, step)
        step *= max(1, extent)
    return tuple(strides)


class Arrays:
    """What kinds share."""
    staged = False

    def taken(self, x, stream):
        """What the other functions are given in the place of x, for a call on this stream; None: the framework's current one."""
        return x

    def finish(self, x):
        """Called when a call on such arrays was enqueued, or has failed."""

    def place(self, x):
        """Where it lies, for messages; of an array that was not taken, too."""
        return self.describe(x).device

    def is_read_only(self, x):
        """Whether nobody may write it."""
        return False

    def given_back(self, x, result):
        """What the caller gets in the place of a result, whose first input was x."""
        return result

    def offset(self, x):
        """Where its first element is among the bytes that are copied, of a kind that is staged."""
        return 0

    def short_calls(self):
        """A function of the launch's address that gives a _calls.Calls; None where there is no short way for such arrays."""
        return None


class TorchArrays(Arrays):
    """CUDA tensors of torch."""

    def __init__(self, torch):
        self.torch = torch
        names = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "float64": "f64", "int32": "i32", "int64": "i64", "uint8": "u8",
                 "int8": "i8", "uint32": "u32", "float8_e4m3fn": "e4m3"}
        self.names = {getattr(torch, name): short for name, short in names.items() if hasattr(torch, name)}
        self.types = {short: dtype for dtype, short in self.names.items()}
        self.raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # as Triton takes it

    def short_calls(self):
        if Calls is None or self.raw_stream is None:
            return None

        def calls(launch):
            made = Calls(launch, (self.torch.Tensor, self.torch.nn.Parameter), self.raw_stream, fail)
            made.set_current_device(getattr(self.torch._C, "_cuda_getDevice", self.torch.cuda.current_device))
            return made
        return calls

    def maker(self, result):
        return functools.partial(self.torch.empty, result.shape, dtype=result.dtype, device=result.device)

    def makers_here(self, results):
        """As torch.compile's code makes tensors, on the current device: in a third of the time."""
        guards = getattr(getattr(self.torch._C, "_dynamo", None), "guards", None)
        empty = getattr(guards, "_empty_strided_cuda", None)
        if empty is None:
            return []
        return [functools.partial(empty, tuple(result.shape), result.stride(), result.dtype) for result in results]

    def has(self, x):
        return isinstance(x, self.torch.Tensor) and x.is_cuda

    def describe(self, x):
        if x.is_neg():
            raise HeddleError("a tensor whose elements torch has yet to negate; fix: x.resolve_neg()")
        return Described(self.names.get(x.dtype, str(x.dtype)), tuple(x.shape), x.stride(), x.data_ptr(), f"cuda:{x.device.index}")

    def empty(self, x, shape, dtype):
        return self.torch.empty(shape, dtype=self.types[dtype], device=x.device)

    def reshaped(self, x, shape):
        return x.reshape(shape)

    def stream(self, x):
        if self.raw_stream is not None:
            return self.raw_stream(x.device.index)
        return self.torch.cuda.current_stream(x.device).cuda_stream


class CupyArrays(Arrays):
    """Arrays of CuPy."""

    def __init__(self, cupy):
        self.cupy = cupy
        self.names = {"float32": "f32", "float16": "f16", "float64": "f64", "int32": "i32", "int64": "i64", "uint8": "u8", "int8": "i8", "uint32": "u32"}
        self.types = {short: name for name, short in self.names.items()}

    def has(self, x):
        return isinstance(x, self.cupy.ndarray)

    def describe(self, x):
        strides = tuple(stride // x.itemsize for stride in x.strides)
        return Described(self.names.get(str(x.dtype), str(x.dtype)), x.shape, strides, x.data.ptr, f"cuda:{x.device.id}")

    def empty(self, x, shape, dtype):
        if dtype not in self.types:
            raise HeddleError(f"CuPy has no element type {dtype}; fix: give a tensor of torch")
        with x.device:
            return self.cupy.empty(shape, dtype=self.types[dtype])

    def reshaped(self, x, shape):
        return x.reshape(shape)

    def stream(self, x):
        with x.device:
            return self.cupy.cuda.get_current_stream().ptr


class HostArrays(Arrays):
    """Anything with a buffer: NumPy's arrays, memoryviews, array.array. They run in the interpreter, on copies."""
    staged = True
    NAMES = {"f": "f32", "e": "f16", "d": "f64", "i": "i32", "q": "i64", "l": "i64", "B": "u8", "b": "i8", "I": "u32", "h": "i16", "H": "u16",
             "Q": "u64", "L": "u64", "?": "bool"}
    CODES = {"f32": "f", "f16": "e", "f64": "d", "i32": "i", "i64": "q", "u8": "B", "i8": "b", "u32": "I"}

    def has(self, x):
        try:
            memoryview(x)
            return True
        except TypeError:
            return False

    def taken(self, x, stream):
        if not memoryview(x).c_contiguous:
            raise HeddleError("an array on the host that is not contiguous, row by row; fix: give one that is (numpy.ascontiguousarray makes a copy)")
        return x

    def place(self, x):
        return "the host"

    def is_read_only(self, x):
        return memoryview(x).readonly

    def view(self, x):
        return memoryview(x)

    def describe(self, x):
        view = self.view(x)
        code = view.format.lstrip("@=<")
        return Described(self.NAMES.get(code, code), tuple(view.shape), row_major(view.shape), 0, "interp")

    def empty(self, x, shape, dtype):
        if "numpy" in sys.modules and isinstance(x, sys.modules["numpy"].ndarray):
            return sys.modules["numpy"].empty(shape, dtype=self.CODES[dtype])
        # Python's own arrays have neither 16-bit floats nor arrays without elements.
        if dtype not in self.CODES or dtype == "f16" or 0 in shape:
            raise HeddleError(f"an array of {dtype}, {list(shape)}, on the host needs NumPy; fix: import numpy" if dtype in self.CODES else
                              f"NumPy has no element type {dtype}; fix: give a tensor of torch")
        size = struct.calcsize(self.CODES[dtype])
        for extent in shape:
            size *= extent
        return memoryview(bytearray(size)).cast(self.CODES[dtype], shape)

    def reshaped(self, x, shape):
        return x.reshape(shape) if hasattr(x, "reshape") else memoryview(x).cast("B").cast(memoryview(x).format, shape)

    def stream(self, x):
        return 0


def kinds():
    """Of the frameworks that the program has imported; it has arrays of no others. The first that has an array decides."""
    from heddle import dlpack  # which needs this module
    found = []
    for name, kind in (("torch", TorchArrays), ("cupy", CupyArrays)):
        if name in sys.modules:
            found.append(_kind(kind, sys.modules[name]))
    return [*found, *dlpack.KINDS, _HOST]


def kind_of(x):
    """The kind of an array, or None."""
    if "numpy" in sys.modules and isinstance(x, sys.modules["numpy"].ndarray):
        return _HOST
    return next((kind for kind in kinds() if kind.has(x)), None)


def common_kind(arrays):
    """A kind that all of them are of: that of the first, or else one that knows any of them by a protocol; or None."""
    first = kind_of(arrays[0])
    if all(kind_of(x) is first for x in arrays[1:]):
        return first
    return next((kind for kind in kinds() if all(kind.has(x) for x in arrays)), None)


def _kind(kind, module):
    if kind not in _KINDS:
        _KINDS[kind] = kind(module)
    return _KINDS[kind]


_KINDS, _HOST = {}, HostArrays()
