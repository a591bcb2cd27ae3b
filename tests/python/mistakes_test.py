"""What a user of the Python package does wrong, a row each: the whole text of the HeddleError, which says once what is wrong, of which operation and
tensor, and how to mend it. On the host, and on a stand-in for NVIDIA's driver.

    HEDDLE_LIBRARY=libheddle.so HEDDLE_FAKE_CUDA=libfake_cuda.so PYTHONPATH=tools/python python3 mistakes_test.py
"""
import array
import ctypes
import itertools
import os
import re
import struct
import unittest

import heddle
from dlpack_test import Plain
from heddle.library import shared

FAKE = os.environ["HEDDLE_FAKE_CUDA"]
GPU0, GPU1 = (2, 0), (2, 1)


def floats(count, shape):
    return memoryview(bytearray(struct.pack(f"{count}f", *range(count)))).cast("f", shape)


class Mistakes(unittest.TestCase):
    """What the others are made of."""

    def says(self, text, call):
        with self.assertRaises(heddle.HeddleError) as raised:
            call()
        # Where a kernel's file lies, and the line, may change.
        self.assertEqual(re.sub(r"\([^()]*?(\w+\.cc):\d+\)", r"(\1)", str(raised.exception)), text)


class Calls(Mistakes):
    def setUp(self):
        self.x = floats(6, [2, 3])

    def test_element_types(self):
        whole = memoryview(array.array("i", [1, 2, 3]))
        self.says("softmax: 'x' has elements of i32, and the operation takes f32, f16, bf16; fix: convert it", lambda: heddle.softmax(whole))
        self.says("gemm: 'a' has elements of f32, and the operation takes f16, bf16, tf32, e4m3; fix: set dtype='tf32', or convert it",
                  lambda: heddle.gemm(self.x, self.x))
        heddle.gemm(self.x, self.x, dtype="tf32")
        self.says("'w' is i32[3], and kernel 'rms_norm' takes f32, f16, bf16; fix: convert it", lambda: heddle.rms_norm(self.x, whole))
        self.says("softmax: 'x' is an array of (5, 64, 1), DLPack's type code 5 of 64 bits and 1 lane, which is none of Heddle's types; fix: convert it to "
                  "one of " + ", ".join(heddle.dlpack.TYPES.values()), lambda: heddle.softmax(Plain([1, 2], [1], dtype=(5, 64, 1))))
        for code in "hHQL?":
            self.says(f"softmax: 'x' has elements of {heddle.arrays.HostArrays.NAMES[code]}, and the operation takes f32, f16, bf16; fix: convert it",
                      lambda: heddle.softmax(memoryview(bytearray(8)).cast(code)))
        self.says("NumPy has no element type bf16; fix: give a tensor of torch", lambda: heddle.cast(self.x, to="bf16"))

    def test_shapes(self):
        self.says("'w' is f32[2, 3], and kernel 'rms_norm' takes a tensor of 1 mode, not of 2; fix: reshape it", lambda: heddle.rms_norm(self.x, self.x))
        self.says("'w' has extent 2 in mode 0, and kernel 'rms_norm' takes 3 there, columns of 'x'; fix: pass tensors that agree in columns",
                  lambda: heddle.rms_norm(self.x, floats(2, [2])))
        self.says("'y' has extent 3 in mode 0, and kernel 'relu' takes 2 there, rows of 'x'; fix: pass tensors that agree in rows",
                  lambda: heddle.relu(self.x, y=floats(9, [3, 3])))
        self.says("add: the leading extents of 'b' are [1, 4], and others' [2, 2]; fix: give tensors that agree in all modes but those that the operation "
                  "works along", lambda: heddle.add(floats(8, [2, 2, 2]), floats(8, [1, 4, 2])))
        self.says("topk: k is 4 and rows have 3 elements; fix: a k of at most 3", lambda: heddle.topk(self.x, k=4))

    def test_strides(self):
        odd = "is an array on the host that is not contiguous, row by row; fix: give one that is (numpy.ascontiguousarray makes a copy)"
        self.says(f"relu: 'x' {odd}", lambda: heddle.relu(floats(6, [6])[::-1]))
        self.says(f"relu: 'x' {odd}", lambda: heddle.relu(floats(6, [6])[::2]))
        self.says(f"relu: 'y' {odd}", lambda: heddle.relu(floats(3, [3]), y=floats(6, [6])[::2]))
        shares = "by which elements share memory, and kernel 'relu' writes it; fix: give a tensor whose elements lie apart"
        for strides in ((0, 1), (1, 1), (-1, 1)):
            self.says(f"'y' has extents [2, 2] and strides {list(strides)}, {shares}",
                      lambda: heddle.relu(Plain(range(4), [2, 2]), y=Plain(range(4), [2, 2], strides, byte_offset=4)))
        self.says("relu: 'x' is an array of extents [2, 2, 2] and strides [2, 4, 1], whose leading modes are no rows of one matrix; "
                  "fix: make it contiguous", lambda: heddle.relu(Plain(range(8), [2, 2, 2], (2, 4, 1))))

    def test_what_may_not_be_written(self):
        for y in (memoryview(bytes(24)).cast("f", [2, 3]), Plain(range(6), [2, 3], flags=1)):
            x = self.x if isinstance(y, memoryview) else Plain(range(6), [2, 3])
            self.says("relu: 'y' is written, and its library lets nobody write it; fix: give another array, or none", lambda: heddle.relu(x, y=y))

    def test_devices(self):
        apart = "fix: give all of them on the host, or all on a GPU, with __dlpack__"
        self.says(f"rms_norm: its tensors have no kind in common: x is memoryview on the host, w is Plain on cuda:0; {apart}",
                  lambda: heddle.rms_norm(self.x, Plain([1] * 3, [3], device=GPU0)))
        # As a tensor of torch's on the host beside one on a GPU.
        self.says(f"rms_norm: its tensors have no kind in common: x is Plain on cuda:1, w is Plain on the host; {apart}",
                  lambda: heddle.rms_norm(Plain(range(6), [2, 3], device=GPU1), Plain([1] * 3, [3])))
        self.says("add: its tensors are on different devices: a is on cuda:0, b is on cuda:1; fix: copy them to one",
                  lambda: heddle.add(Plain([1], [1], device=GPU0), Plain([1], [1], device=GPU1)))
        self.says("relu: 'x' is an array in memory of kDLROCM 0, which Heddle does not reach; fix: copy it to a CUDA GPU or to the host",
                  lambda: heddle.relu(Plain([1], [1], device=(10, 0))))
        self.says("softmax: list is no array that Heddle knows; fix: give 'x' as a CUDA tensor of torch or CuPy, an array on the host, or one that has "
                  "__dlpack__", lambda: heddle.softmax([1, 2]))

    def test_what_is_not_given(self):
        self.says("rms_norm: it reads 'w', which is not given; fix: give w=…", lambda: heddle.rms_norm(self.x))
        self.says("there is no operation 'softmx'; did you mean 'softmax'?", lambda: heddle.operation("softmx"))


class OnAGpu(Mistakes):
    """Each test opens drivers that the process does not know yet, by other names of one library."""
    names = itertools.count(1)

    def setUp(self):
        before = {name: os.environ.get(name) for name in ("HEDDLE_CUDA_LIBRARY", "HEDDLE_OPTIONS", "HEDDLE_PTXAS")}

        def restore():
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value
            self.fake.heddle_fake_cuda_pretend(13000, 9, 0)
        self.fake = ctypes.CDLL(FAKE)
        self.addCleanup(restore)
        os.environ["HEDDLE_OPTIONS"] = "--assembler=driver"

    def open(self, version=13000, major=9, minor=0):
        self.fake.heddle_fake_cuda_pretend(version, major, minor)
        os.environ["HEDDLE_CUDA_LIBRARY"] = os.path.join(os.path.dirname(FAKE), *["."] * next(self.names), "libfake_cuda.so")
        device = shared().open("cuda:0")
        self.addCleanup(device.close)
        return device

    def compile(self, device):
        return device.compile("row_sum", [], [("x", "f32", (3, 4)), ("y", "f32", (3,))])

    def test_pointers(self):
        device = self.open()
        call, host = self.compile(device), (ctypes.c_float * 12)()
        x, y = device.allocate(48), device.allocate(12)
        launch = lambda *addresses: call.launch(call.pointers(addresses))
        self.says("argument 0 ('x') of kernel 'row_sum' (row_sum.cc) is a null pointer to a tensor with elements; fix: allocate it, or pass extents of 0",
                  lambda: launch(None, y))
        self.says("'x' of kernel 'row_sum' lies in memory of the host, which kernels on cuda:0 cannot reach; fix: copy it to memory of the device, or pin "
                  "it (cuMemHostRegister)", lambda: launch(ctypes.addressof(host), y))
        self.says("the call has 2 tensors, not 1; fix: give an address for each of x, y", lambda: launch(x))
        launch(x, y)

    def test_gpus(self):
        refused = "kernel 'row_sum' (row_sum.cc) cannot be compiled for cuda:0: Fake GPU has compute capability {}, and Heddle compiles for sm_80 to sm_120a; fix: {}"
        self.says(refused.format("6.1", 'use a GPU of compute capability 8.0 or newer, or the interpreter, Device::open("interp")'),
                  lambda: self.compile(self.open(major=6, minor=1)))
        self.says(refused.format("13.0", "update Heddle, or let the driver translate older code, "
                                 'HEDDLE_OPTIONS="--gpu-arch=sm_120 --assembler=driver"'), lambda: self.compile(self.open(major=13, minor=0)))
        self.compile(self.open(major=12, minor=1))

    def test_drivers_and_assemblers(self):
        works = 'the interpreter still works: Device::open("interp")'
        with self.assertRaisesRegex(heddle.HeddleError, "^the driver .*/libfake_cuda.so speaks CUDA 11.4, and Heddle needs 12.0 or newer; fix: update the "
                                    "NVIDIA driver to 525 or newer; until then " + re.escape(works) + "$"):
            self.open(version=11040)
        os.environ.update(HEDDLE_OPTIONS="--assembler=ptxas", HEDDLE_PTXAS="/nowhere/ptxas")
        self.says("kernel 'row_sum' (row_sum.cc): ptxas from HEDDLE_PTXAS (/nowhere/ptxas) cannot be used: /nowhere does not exist; fix: unset HEDDLE_PTXAS, or "
                  "set it to the absolute path of ptxas", lambda: self.compile(self.open(major=8)))
        os.environ["HEDDLE_CUDA_LIBRARY"] = "/nowhere/libcuda.so.1"
        self.says(f"/nowhere/libcuda.so.1 not found; fix: install NVIDIA's driver, or name its library in HEDDLE_CUDA_LIBRARY; {works}",
                  lambda: shared().open("cuda:0"))
        self.says('\'gpu\' names no device; say "cuda:0" (or another number) or "interp"', lambda: shared().open("gpu"))


if __name__ == "__main__":
    unittest.main()
