"""Arrays of any library that speaks DLPack, such as JAX's: taken by __dlpack__ and __dlpack_device__, and results given back as such.

Arrays on the host run in the interpreter, on copies. On a GPU the library is told the stream that the call is enqueued on, which is `stream=…` or
else CUDA's legacy default stream, and orders it behind its own work (__dlpack__(stream=…) of the array API standard). Nobody tells it when the
call is complete, and so the call waits until it is. Results become arrays of the library of the first input, by its from_dlpack, where
it has one; else they are of type Array."""
import ctypes
import math
import sys

from heddle.arrays import Arrays, Described, HeddleError, row_major
from heddle.library import device

VERSION = (1, 1)
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
MEMORY = {CPU: "kDLCPU", CUDA: "kDLCUDA", CUDA_HOST: "kDLCUDAHost", 4: "kDLOpenCL", 7: "kDLVulkan", 8: "kDLMetal", 9: "kDLVPI", 10: "kDLROCM",
          11: "kDLROCMHost", 12: "kDLExtDev", CUDA_MANAGED: "kDLCUDAManaged", 14: "kDLOneAPI", 15: "kDLWebGPU", 16: "kDLHexagon", 17: "kDLMAIA",
          18: "kDLTrn"}
READ_ONLY, COPIED, PADDED = 1, 2, 4  # flags
# (code, bits, lanes) -> as Heddle calls it.
TYPES = {(6, 8, 1): "bool", (0, 8, 1): "i8", (1, 8, 1): "u8", (0, 16, 1): "i16", (1, 16, 1): "u16", (0, 32, 1): "i32", (1, 32, 1): "u32", (0, 64, 1): "i64",
         (1, 64, 1): "u64", (10, 8, 1): "e4m3", (12, 8, 1): "e5m2", (14, 8, 1): "e8m0", (17, 4, 2): "e2m1x2", (2, 16, 1): "f16", (4, 16, 1): "bf16",
         (2, 32, 1): "f32", (2, 64, 1): "f64"}
BYTES = {name: bits * lanes // 8 for (_, bits, lanes), name in TYPES.items()} | {"tf32": 4}
# Libraries whose arrays never change, which the form of DLPack that they give cannot say.
IMMUTABLE = ("jax", "jaxlib")


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _Legacy(ctypes.Structure):
    NAME = b"dltensor"
    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]


class _Versioned(ctypes.Structure):
    NAME = b"dltensor_versioned"
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)), ("flags", ctypes.c_uint64), ("tensor", _DLTensor)]


def _python(name, result, *arguments):
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_capsule_is = _python("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_capsule_pointer = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_capsule_new = _python("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class Taken:
    """An array of another library. The capsule keeps it, and calls the deleter when it goes: nobody else has taken it over."""

    def __init__(self, x, stream):
        kind, number = _memory_of(x)
        if kind not in (CPU, CUDA, CUDA_HOST, CUDA_MANAGED):
            raise HeddleError(f"an array in memory of {MEMORY.get(kind, f'device type {kind}')} {number}, which Heddle does not reach; "
                              "fix: copy it to a CUDA GPU or to the host")
        on_host = kind in (CPU, CUDA_HOST)
        self.capsule = _export(x, {} if on_host else {"stream": stream})
        tensor, flags = _tensor_of(self.capsule)
        self.read_only = bool(flags & READ_ONLY) or type(x).__module__.partition(".")[0] in IMMUTABLE
        self.dtype, self.device = _type_of(x, tensor, flags), "interp" if on_host else f"cuda:{number}"
        self.shape = tuple(tensor.shape[:tensor.ndim]) if tensor.ndim else ()
        self.strides = tuple(tensor.strides[:tensor.ndim]) if tensor.ndim and tensor.strides else row_major(self.shape)
        self.address = (tensor.data or 0) + tensor.byte_offset

    def reshaped(self, shape):
        """The same elements with the leading modes made one, or none made one: no copy."""
        first = len(self.shape) - len(shape) + 1
        modes = [mode for mode in zip(self.shape[:first], self.strides[:first]) if mode[0] != 1]
        if any(outer[1] != inner[0] * inner[1] for outer, inner in zip(modes, modes[1:])) and 0 not in self.shape:
            raise HeddleError(f"an array of extents {list(self.shape)} and strides {list(self.strides)}, whose leading modes are no rows of one matrix; "
                              "fix: make it contiguous")
        behind = self.strides[first:]
        step = modes[-1][1] if modes else max([1, *(extent * stride for extent, stride in zip(shape[1:], behind))])
        made = object.__new__(Taken)
        made.__dict__.update(self.__dict__, shape=tuple(shape), strides=(step, *behind))
        return made


class Array:
    """What an operation wrote, for every library that takes DLPack: jax.numpy.from_dlpack(y), torch.from_dlpack(y)."""
    read_only = False

    def __init__(self, shape, dtype, where):
        self.dtype, self.shape, self.strides, self.device = dtype, tuple(shape), row_major(shape), where
        self._memory = _Memory(where, math.prod(shape) * BYTES[dtype])
        self.address = self._memory.address

    def __repr__(self):
        return f"<heddle array {self.dtype}{list(self.shape)} on {self.device}>"

    def __dlpack_device__(self):
        return (CPU, 0) if self.device == "interp" else (CUDA, int(self.device.partition(":")[2]))

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """A capsule. The array is complete, so that no stream has to wait for it."""
        if stream is not None and (self.device == "interp" or stream == 0 or stream < -1):
            fix = "None, for the host has no streams" if self.device == "interp" else "1, the legacy default stream, 2, the thread's, -1, none, or a CUstream"
            raise ValueError(f"{stream} is no stream for an array on {self.device}; fix: {fix}")
        if dl_device is not None and tuple(map(int, dl_device)) != self.__dlpack_device__():
            raise BufferError(f"the array is on {self.device} and stays there; fix: copy it by the library that wants it elsewhere")
        form = _Versioned if max_version is not None and max_version[0] >= 1 else _Legacy
        managed = (self._copied() if copy else self)._managed(form)
        if copy and form is _Versioned:
            form.from_address(managed).flags |= COPIED
        return _Issued.capsule(managed, form)

    def _managed(self, form):
        return self._memory.device.to_dlpack(self, form is _Versioned)

    def _copied(self):
        """Through the host."""
        made, on = Array(self.shape, self.dtype, self.device), self._memory.device
        if size := math.prod(self.shape) * BYTES[self.dtype]:
            on.upload(made.address, on.download(self.address, size))
        return made

    def reshaped(self, shape):
        made = object.__new__(Array)
        made.__dict__.update(self.__dict__, shape=tuple(shape), strides=row_major(shape))
        return made


class _Memory:
    """Memory of a device, which goes with the last array here and the last tensor elsewhere that lie in it."""
    address = None

    def __init__(self, where, size):
        self.device = device(where)
        self.address = self.device.allocate(size)
        if size and where == "interp":
            self.device.upload(self.address, bytes(size))  # an interpreter gives away no bytes that nobody wrote

    def __del__(self):
        # Not where the interpreter ends, which takes its modules away.
        if self.address is not None and ctypes is not None:
            self.device.free(self.address)


class _Issued:
    """Capsules that were given away. They have no destructor: written in Python it would run in the midst of whatever drops the capsule, even of an
    error. One that nobody took over and nobody holds any more is found here, when the next one is made."""
    given = []

    @classmethod
    def capsule(cls, managed, form):
        cls.sweep()
        capsule = _capsule_new(managed, form.NAME, None)
        cls.given.append((capsule, form))
        return capsule

    @classmethod
    def sweep(cls):
        given, cls.given = cls.given, []
        while given:
            capsule, form = given.pop()
            if sys.getrefcount(capsule) > 2:  # `capsule`, and the argument
                cls.given.append((capsule, form))
            elif _capsule_is(capsule, form.NAME):  # else its consumer calls the deleter
                managed = _capsule_pointer(capsule, form.NAME)
                form.from_address(managed).deleter(managed)


def _memory_of(x):
    kind, number = x.__dlpack_device__()
    return int(kind), int(number)


def _export(x, stream):
    try:
        return x.__dlpack__(max_version=VERSION, **stream)
    except TypeError:  # it knows no versions
        return x.__dlpack__(**stream)


def _tensor_of(capsule):
    for form in (_Versioned, _Legacy):
        if not _capsule_is(capsule, form.NAME):
            continue
        managed = form.from_address(_capsule_pointer(capsule, form.NAME))
        if form is _Legacy:
            return managed.tensor, 0
        if managed.major != VERSION[0]:
            raise HeddleError(f"an array that comes as version {managed.major}.{managed.minor} of DLPack, of which Heddle reads version {VERSION[0]}")
        return managed.tensor, managed.flags
    raise HeddleError(f"an array whose __dlpack__ gave {type(capsule).__name__}, and no capsule of DLPack that nobody has taken over")


def _type_of(x, tensor, flags):
    found = TYPES.get((tensor.code, tensor.bits, tensor.lanes))
    if found is None or (tensor.bits < 8 and flags & PADDED):
        raise HeddleError(f"an array of {getattr(x, 'dtype', 'elements')}, DLPack's type code {tensor.code} of {tensor.bits} bits and {tensor.lanes} "
                          f"lane{'s' * (tensor.lanes != 1)}, which is none of Heddle's types; fix: convert it to one of {', '.join(TYPES.values())}")
    return found


class DlpackArrays(Arrays):
    """Arrays with __dlpack__ on GPUs, and in memory that Heddle does not reach, which taken() refuses."""

    def has(self, x):
        if not hasattr(type(x), "__dlpack__") or not hasattr(type(x), "__dlpack_device__"):
            return False
        return (_memory_of(x)[0] in (CPU, CUDA_HOST)) == self.staged

    def taken(self, x, stream):
        return Taken(x, stream or 1)  # 0, the default stream, has the number 1 there

    def place(self, x):
        kind, number = _memory_of(x)
        if kind in (CPU, CUDA_HOST):
            return "the host"
        return f"cuda:{number}" if kind in (CUDA, CUDA_MANAGED) else MEMORY.get(kind, f"device type {kind}")

    def is_read_only(self, x):
        return getattr(x, "read_only", False)

    def describe(self, x):
        return Described(x.dtype, x.shape, x.strides, x.address, x.device)

    def empty(self, x, shape, dtype):
        return Array(shape, dtype, x.device)

    def reshaped(self, x, shape):
        return x.reshaped(shape)

    def stream(self, x):
        return 0

    def finish(self, x):
        device(x.device).synchronize()

    def given_back(self, x, result):
        namespace = x.__array_namespace__() if hasattr(x, "__array_namespace__") else None
        for source in (type(x), namespace, sys.modules.get(type(x).__module__.partition(".")[0])):
            from_dlpack = getattr(source, "from_dlpack", None)
            if from_dlpack is not None:
                return from_dlpack(result)
        return result


class DlpackHostArrays(DlpackArrays):
    """Arrays with __dlpack__ on the host. They run in the interpreter, on copies."""
    staged = True

    def view(self, x):
        """The bytes from the first that it reaches to the last."""
        if 0 in x.shape:
            return memoryview(b"")
        reach = sum((extent - 1) * abs(stride) for extent, stride in zip(x.shape, x.strides))
        size = (reach + 1) * BYTES[x.dtype]
        return memoryview((ctypes.c_char * size).from_address(x.address - self.offset(x))).cast("B")

    def offset(self, x):
        return -sum(min(0, (extent - 1) * stride) for extent, stride in zip(x.shape, x.strides)) * BYTES[x.dtype]

    def finish(self, x):
        pass


KINDS = (DlpackArrays(), DlpackHostArrays())
