"""libheddle.so for Python, by ctypes (runtime/c/heddle_c.h): operations by name, on memory and streams of the caller."""
import ctypes
import functools
import json
import os

from heddle.arrays import HeddleError, row_major

ABI = 1


class _Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p), ("rank", ctypes.c_int32),
                ("extents", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64))]


_PROGRESS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_char_p, ctypes.c_char_p)


def _texts(texts):
    return (ctypes.c_char_p * max(1, len(texts)))(*[text.encode() for text in texts]), len(texts)


def _described(tensors):
    """(name, dtype, extents), or with strides behind, for C."""
    described = []
    for name, dtype, extents, *strides in tensors:
        array = ctypes.c_int64 * max(1, len(extents))
        described.append(_Tensor(name.encode(), dtype.encode(), len(extents), array(*extents),
                                 array(*(strides[0] if strides else row_major(extents)))))
    return (_Tensor * max(1, len(described)))(*described)


@functools.lru_cache(maxsize=None)
def shared():
    """The library of this process: HEDDLE_LIBRARY, or the one that lies beside this package (a wheel), or that of the installation or the build
    tree that it lies in."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.environ.get("HEDDLE_LIBRARY"), os.path.join(here, "libheddle.so")]
    places += [os.path.join(here, *[".."] * 4, folder, "libheddle.so") for folder in ("lib", "lib64", "lib/x86_64-linux-gnu")]
    for place in places:
        if place and os.path.exists(place):
            return Library(os.path.abspath(place))
    raise HeddleError(f"libheddle.so was found at none of {', '.join(place for place in places if place)}; fix: set HEDDLE_LIBRARY to it")


@functools.lru_cache(maxsize=None)
def device(name):
    """A device of the process, opened once."""
    return shared().open(name)


_open = device


def warm_up(path, device="cuda:0", threads=0, progress=None):
    """Compiles what an earlier process recorded with HEDDLE_RECORD=path in its environment, on all cores, or on so many threads: the calls of
    this process then find it. progress(done, total, what, error) is called for each line, error None or a text. Returns a dictionary: of how many
    lines ("lines") some were compiled ("warmed"), were there already ("there"), and lists of those that were "skipped" or have "failed", each with
    "line", "what" and "why". Raises HeddleError where the file cannot be read or is damaged, and what progress raises."""
    return _open(device).warm_up(path, threads, progress)


class Library:
    """The shared library. Errors are HeddleError."""

    def __init__(self, path):
        self.functions = ctypes.CDLL(path)
        if (abi := self.functions.heddle_c_abi()) != ABI:
            raise HeddleError(f"{path} speaks version {abi} of Heddle's C functions, and this program {ABI}")

    def call(self, name, *arguments):
        function = getattr(self.functions, name)
        function.restype = ctypes.c_char_p
        if error := function(*arguments):
            raise HeddleError(error.decode())

    def json(self, name, *arguments):
        text = ctypes.c_char_p()
        self.call(name, *arguments, ctypes.byref(text))
        return json.loads(text.value)

    def operations(self):
        return self.json("heddle_operations")

    def tensors(self, operation, settings=(), sizes=()):
        """The tensors of a call, and its sizes; settings and sizes are texts, name=value."""
        return self.json("heddle_tensors", operation.encode(), *_texts(settings), *_texts(sizes))

    def bind(self, operation, settings, inputs):
        """The tensors of a call whose inputs, (name, dtype, extents, …), have these extents."""
        described = _described(inputs)
        return self.json("heddle_bind", operation.encode(), *_texts(settings), described, len(inputs))["tensors"]

    def open(self, device):
        return Device(self, device)


class Device:
    """A device, with memory that lasts as long as it."""

    def __init__(self, library, name):
        self.library, self.handle = library, ctypes.c_void_p()
        library.call("heddle_open", name.encode(), ctypes.byref(self.handle))
        self.info = library.json("heddle_device_info", self.handle)

    def close(self):
        self.library.functions.heddle_close(self.handle)

    def allocate(self, size):
        memory = ctypes.c_void_p()
        self.library.call("heddle_allocate", self.handle, ctypes.c_size_t(size), ctypes.byref(memory))
        return memory.value

    def free(self, address):
        self.library.functions.heddle_free(self.handle, ctypes.c_void_p(address))

    def upload(self, address, data):
        self.library.call("heddle_upload", self.handle, ctypes.c_void_p(address), bytes(data), ctypes.c_size_t(len(data)))

    def download(self, address, size):
        data = ctypes.create_string_buffer(size)
        self.library.call("heddle_download", self.handle, data, ctypes.c_void_p(address), ctypes.c_size_t(size))
        return data.raw

    def to_dlpack(self, tensor, versioned):
        """The address of a managed tensor of DLPack, whose deleter must be called. `tensor` has dtype, shape, strides, and the address that allocate() gave."""
        managed = ctypes.c_void_p()
        self.library.call("heddle_to_dlpack", self.handle, ctypes.c_void_p(tensor.address),
                          _described([("array", tensor.dtype, tensor.shape, tensor.strides)]), ctypes.c_int(versioned), ctypes.byref(managed))
        return managed.value

    def synchronize(self):
        self.library.call("heddle_synchronize", self.handle)

    def warm_up(self, path, threads=0, progress=None):
        """Compiles the calls of a warm-up list: a dictionary of what became of its lines."""
        thrown = []

        def report(_, done, total, job, error):
            try:
                if progress and not thrown:
                    progress(done, total, job.decode(errors="replace"), error.decode(errors="replace") if error else None)
            except BaseException as exception:  # C passes none on: the caller gets it when all is done
                thrown.append(exception)
        described = self.library.json("heddle_warm_up", self.handle, os.fsencode(path), ctypes.c_int32(threads), _PROGRESS(report), None)
        if thrown:
            raise thrown[0]
        return described

    def compile(self, operation, settings, tensors):
        """A call of an operation, compiled. A tensor is (name, dtype, extents), or with strides behind."""
        return Call(self, operation, settings, tensors)


class Call:
    """A compiled call: launch(pointers, stream) enqueues it, pointers in the order of the tensors."""

    def __init__(self, device, operation, settings, tensors):
        library, self.device, self.handle = device.library, device, ctypes.c_void_p()
        library.call("heddle_compile", device.handle, operation.encode(), *_texts(settings), _described(tensors), len(tensors),
                     ctypes.byref(self.handle))
        self.library, self.count, self.names = library, len(tensors), [tensor[0] for tensor in tensors]
        self._launch = library.functions.heddle_launch
        self.launch_address = ctypes.cast(self._launch, ctypes.c_void_p).value
        self._launch.restype = ctypes.c_char_p
        self._launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]  # a stream may be a number of 64 bits

    def pointers(self, addresses):
        """Addresses as launch() takes them; made once, where a call is repeated."""
        if len(addresses) != self.count:
            raise HeddleError(f"the call has {self.count} tensors, not {len(addresses)}; fix: give an address for each of {', '.join(self.names)}")
        return (ctypes.c_void_p * max(1, self.count))(*addresses)

    def launch(self, pointers, stream=None):
        if error := self._launch(self.handle, pointers, stream):
            raise HeddleError(error.decode())

    def on_copies(self, views, writes, offsets):
        """One launch on arrays of the host, by name, as views of their bytes, and where in these they start; those named in `writes` are written."""
        memory = {name: self.device.allocate(view.nbytes) for name, view in views.items()}
        try:
            for name, view in views.items():
                # What an operation writes alone it need not read: it finds what was there.
                if view.nbytes:
                    self.device.upload(memory[name], bytes(view))
            self.launch(self.pointers([memory[name] + offsets[name] for name in self.names]))
            for name in writes:
                if views[name].nbytes:
                    views[name].cast("B")[:] = self.device.download(memory[name], views[name].nbytes)
        finally:
            for address in memory.values():
                self.device.free(address)

    def __del__(self):
        # Not where the interpreter ends, which takes its modules away.
        if getattr(self, "handle", None) and ctypes is not None:
            self.release()

    def release(self):
        self.library.functions.heddle_release(self.handle)
        self.handle = None
