"""Time on a device: a GPU's by events of its driver, and the interpreter's by the host's clock."""
import ctypes
import time


class GpuClock:
    """A stream of a GPU, events on it, and what clears its L2 cache."""

    def __init__(self, device, ordinal, flushes):
        self.driver = ctypes.CDLL("libcuda.so.1")
        context, handle = ctypes.c_void_p(), ctypes.c_int()
        self._check("cuInit", 0)
        self._check("cuDeviceGet", ctypes.byref(handle), ordinal)
        self._check("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
        self._check("cuCtxSetCurrent", context)
        self.stream = ctypes.c_void_p()
        self._check("cuStreamCreate", ctypes.byref(self.stream), 1)
        self.events = []
        for _ in range(2):
            event = ctypes.c_void_p()
            self._check("cuEventCreate", ctypes.byref(event), 0)
            self.events.append(event)
        self.flush_us = 0.0
        if not flushes:
            return
        self.flushed_bytes = 2 * device.info["l2_bytes"]
        self.flushed = device.allocate(self.flushed_bytes)
        self.flush_us = min(self.measure(self.flush, 4) for _ in range(5))

    def _check(self, name, *arguments):
        if code := getattr(self.driver, name)(*arguments):
            text = ctypes.c_char_p()
            self.driver.cuGetErrorString(code, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'unknown error').decode()}")

    def flush(self, _=0):
        self._check("cuMemsetD8Async", ctypes.c_uint64(self.flushed), ctypes.c_ubyte(1), ctypes.c_size_t(self.flushed_bytes),
                    self.stream)

    def copy(self, to, source, size):
        """Enqueues a copy on the device."""
        self._check("cuMemcpyDtoDAsync_v2", ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(size), self.stream)

    def synchronize(self):
        self._check("cuStreamSynchronize", self.stream)

    def measure(self, work, count, host_us=0.0):
        """Microseconds of one of `count` calls of work(i). They are enqueued while the cache is flushed, as often as takes
        one and a half times host_us, so that the GPU does not wait for the host."""
        if self.flush_us:
            for _ in range(1 + int(1.5 * host_us / self.flush_us)):
                self.flush()
        start, stop = self.events
        self._check("cuEventRecord", start, self.stream)
        for i in range(count):
            work(i)
        self._check("cuEventRecord", stop, self.stream)
        self._check("cuEventSynchronize", stop)
        milliseconds = ctypes.c_float()
        self._check("cuEventElapsedTime", ctypes.byref(milliseconds), start, stop)
        return milliseconds.value * 1e3 / count


class HostClock:
    """The interpreter's. Its times say nothing of a GPU; they are for trying out what is measured there."""

    flush_us = 0.0
    stream = None

    def __init__(self, device):
        self.device = device

    def copy(self, to, source, size):
        self.device.upload(to, self.device.download(source, size))

    def synchronize(self):
        self.device.synchronize()

    def measure(self, work, count, host_us=0.0):
        start = time.perf_counter()
        for i in range(count):
            work(i)
        return (time.perf_counter() - start) * 1e6 / count


def clock_of(device, name, flushes=True):
    """The clock of a device that was opened by this name; without flushes it clears no cache in front of what it measures."""
    return GpuClock(device, int(name.partition(":")[2] or 0), flushes) if name.startswith("cuda") else HostClock(device)
