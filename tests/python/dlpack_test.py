"""The Python package on arrays of a library that it knows nothing of but DLPack: in the interpreter, and on a stand-in for a GPU.

    HEDDLE_LIBRARY=libheddle.so PYTHONPATH=tools/python python3 dlpack_test.py
"""
import ctypes
import gc
import struct
import sys
import unittest
from unittest import mock

import heddle
import heddle.dlpack


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]


class Versioned(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
                ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


def python(name, result, *arguments):
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


new_capsule = python("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
name_of = python("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
pointer_of = python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
rename = python("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
USED = b"used_dltensor_versioned"


class Plain:
    """A float32 array, unless the producer says otherwise. It remembers what it was asked."""

    def __init__(self, values, shape, strides=None, dtype=(2, 32, 1), device=(1, 0), byte_offset=0, flags=0, version=(1, 0)):
        self.bytes = bytearray(values if isinstance(values, bytes) else struct.pack(f"{len(values)}f", *values))
        self.shape, self.strides, self.dtype, self.device, self.byte_offset = tuple(shape), strides, dtype, device, byte_offset
        self.flags, self.version, self.asked, self.capsules, self.kept = flags, version, [], [], []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **asked):
        self.asked.append(asked)
        count = len(self.shape)
        data = (ctypes.c_char * len(self.bytes)).from_buffer(self.bytes)
        shape = (ctypes.c_int64 * count)(*self.shape)
        strides = (ctypes.c_int64 * count)(*self.strides) if self.strides else None
        tensor = DLTensor(ctypes.addressof(data), self.device, count, *self.dtype, shape, strides, self.byte_offset)
        managed = self.form(tensor)
        self.kept += [data, shape, strides, managed]
        self.capsules.append(new_capsule(ctypes.addressof(managed), self.NAME, None))
        return self.capsules[-1]

    NAME = b"dltensor_versioned"

    def form(self, tensor):
        return Versioned(version=self.version, flags=self.flags, tensor=tensor)

    def values(self):
        return list(memoryview(self.bytes).cast("f"))


class Old(Plain):
    """Of a library from before version 1."""
    NAME = b"dltensor"

    def __dlpack__(self, *, stream=None):
        return super().__dlpack__(stream=stream)

    def form(self, tensor):
        return Managed(tensor=tensor)


class Theirs(Plain):
    """Of a library that takes arrays, too."""

    @classmethod
    def from_dlpack(cls, x):
        capsule = x.__dlpack__(max_version=(1, 0))
        address = pointer_of(capsule, b"dltensor_versioned")
        rename(capsule, USED)
        managed = Versioned.from_address(address)
        tensor = managed.tensor
        shape = tuple(tensor.shape[:tensor.ndim])
        size = tensor.bits // 8
        for extent in shape:
            size *= extent
        made = cls(ctypes.string_at(tensor.data, size), shape, dtype=(tensor.code, tensor.bits, tensor.lanes), device=tuple(tensor.device))
        managed.deleter(address)
        return made


class OnTheHost(unittest.TestCase):
    def test_results_are_arrays_of_the_same_library(self):
        x = Theirs(range(12), [2, 2, 3])
        y = heddle.reduce(x)
        self.assertIs(type(y), Theirs)
        self.assertEqual((y.shape, y.values()), ((2, 2), [3, 12, 21, 30]))
        values, indices = heddle.topk(x, k=1)
        self.assertEqual((values.values(), indices.dtype), ([2, 5, 8, 11], (0, 64, 1)))

    def test_capsules_are_let_go_as_they_came(self):
        x = Theirs([1, 2], [2])
        heddle.relu(x)
        self.assertEqual(x.asked, [{"max_version": (1, 1)}])
        self.assertEqual(sys.getrefcount(x.capsules[0]), 2, "the library's own, and the argument")
        self.assertEqual(name_of(x.capsules[0]), b"dltensor_versioned", "its destructor calls the deleter")

    def test_libraries_that_know_no_versions(self):
        x = Old([-1, 2], [2])
        y = heddle.relu(x)
        self.assertEqual(x.asked, [{"stream": None}])
        self.assertIs(type(y), heddle.dlpack.Array)
        self.assertEqual(Theirs.from_dlpack(y).values(), [0, 2])

    def test_strides_and_offsets(self):
        memory = range(10)
        for shape, strides, offset, sums in (((2, 3), (4, 1), 4, [6, 18]), ((3, 2), (1, 4), 0, [4, 6, 8]), ((2, 2), (-4, -1), 36, [17, 9]),
                                             ((2, 3), (0, 1), 8, [9, 9]), ((2, 2, 2), (4, 2, 1), 0, [1, 5, 9, 13]), ((1, 2, 1), (99, 3, 7), 0, [0, 3])):
            y = heddle.reduce(Theirs(memory, shape, strides, byte_offset=offset))
            self.assertEqual(y.values(), sums, (shape, strides))
            self.assertEqual(y.shape, shape[:-1])

    def test_element_types(self):
        x = Theirs(struct.pack("3H", 0x3f80, 0xc000, 0x4040), [3], dtype=(4, 16, 1))
        self.assertEqual(heddle.cast(x, to="f32").values(), [1, -2, 3])
        y = heddle.relu(x)
        self.assertEqual((y.dtype, bytes(y.bytes)), ((4, 16, 1), struct.pack("3H", 0x3f80, 0, 0x4040)))

    def test_into_what_is_given(self):
        x, y = Theirs([-1, 2, -3, 4], [2, 2]), Theirs([0] * 6, [2, 2], (3, 1))
        self.assertEqual(heddle.relu(x, y=y), ())
        self.assertEqual(y.values(), [0, 2, 0, 0, 4, 0])

    def test_beside_arrays_of_others(self):
        w = memoryview(struct.pack("2f", 1, 2)).cast("f")
        x = Theirs([3, 4, 6, 8], [2, 2])
        for have, want in zip(heddle.add(x, Plain([1] * 4, [2, 2])).values(), [4, 5, 7, 9]):
            self.assertEqual(have, want)
        with self.assertRaisesRegex(heddle.HeddleError, "rms_norm: its tensors have no kind in common: x is Theirs on the host, w is memoryview on the host; fix: give all"):
            heddle.rms_norm(x, w)

    def test_no_elements(self):
        self.assertEqual(heddle.relu(Theirs([0], [0, 3], (5, 1))).shape, (0, 3))

    def test_pinned_memory_is_the_hosts(self):
        x = Plain([-1, 2], [2], device=(3, 0))
        self.assertEqual(flat_of(heddle.relu(x)), [0, 2])
        self.assertEqual(x.asked, [{"max_version": (1, 1)}])

    def test_numpys_arrays_go_another_way(self):
        class Array(bytearray):
            def __dlpack__(self, **_):
                raise AssertionError
            __dlpack_device__ = __dlpack__
        made = mock.Mock(side_effect=lambda shape, dtype: memoryview(bytearray(8)).cast(dtype, shape))
        with mock.patch.dict(sys.modules, numpy=mock.Mock(ndarray=Array, empty=made)):
            self.assertEqual(list(heddle.cast(Array(b"\1\2"), to="f32")), [1, 2])
        made.assert_called_once()


class Results(unittest.TestCase):
    def setUp(self):
        self.y = heddle.relu(Plain([-1, 2], [1, 2]))

    def test_they_say_where_they_are(self):
        self.assertEqual(self.y.__dlpack_device__(), (1, 0))
        self.assertEqual(repr(self.y), "<heddle array f32[1, 2] on interp>")
        self.assertEqual(heddle.dlpack.Array((2,), "f32", "interp").shape, (2,))
        self.assertEqual(flat_of(heddle.relu(self.y)), [0, 2], "they are arguments, too")

    def test_memory_lives_as_long_as_somebody_has_it(self):
        capsule = self.y.__dlpack__()
        managed = Managed.from_address(pointer_of(capsule, b"dltensor"))
        del self.y
        gc.collect()
        heddle.relu(Theirs([5] * 2, [1, 2]))  # makes capsules, and memory
        self.assertEqual(struct.unpack("2f", ctypes.string_at(managed.tensor.data, 8)), (0, 2))
        rename(capsule, b"used_dltensor")
        managed.deleter(ctypes.addressof(managed))

    def test_capsules_that_nobody_takes_are_deleted(self):
        kept = self.y.__dlpack__(max_version=(2, 0))
        self.assertEqual(name_of(kept), b"dltensor_versioned")
        for _ in range(20):
            self.y.__dlpack__()
        self.assertLessEqual(len(heddle.dlpack._Issued.given), 2, "the one that is kept, and the last")
        heddle.dlpack._Issued.sweep()
        self.assertEqual([capsule for capsule, _ in heddle.dlpack._Issued.given], [kept])
        managed = Versioned.from_address(pointer_of(kept, b"dltensor_versioned"))
        kind, calls = type(managed.deleter), []
        theirs = kind(ctypes.cast(managed.deleter, ctypes.c_void_p).value)
        deleter = kind(lambda address: calls.append(address) or theirs(address))
        managed.deleter = deleter
        del kept
        heddle.dlpack._Issued.sweep()
        self.assertEqual(calls, [ctypes.addressof(managed)])

    def test_copies(self):
        for copy, flags in ((None, 0), (False, 0), (True, 2)):
            capsule = self.y.__dlpack__(max_version=(1, 0), copy=copy)
            managed = Versioned.from_address(pointer_of(capsule, b"dltensor_versioned"))
            self.assertEqual((managed.flags, managed.tensor.data == self.y.address), (flags, not copy))
            self.assertEqual(struct.unpack("2f", ctypes.string_at(managed.tensor.data, 8)), (0, 2))

    def test_what_it_does_not_do_is_refused(self):
        for kind, text, asked in ((ValueError, "3 is no stream for an array on interp; fix: None", {"stream": 3}), (BufferError, "stays there", {"dl_device": (2, 0)})):
            with self.assertRaisesRegex(kind, text):
                self.y.__dlpack__(**asked)
        self.y.__dlpack__(dl_device=(1, 0), copy=False, stream=None)


def flat_of(y):
    return Theirs.from_dlpack(y).values()


class Mistakes(unittest.TestCase):
    def says(self, text, call, kind=heddle.HeddleError):
        with self.assertRaises(kind) as raised:
            call()
        self.assertIn(text, str(raised.exception))

    def test_arrays_that_cannot_be_taken(self):
        good = [1, 2]
        self.says("relu: 'x' is an array in memory of kDLROCM 1, which Heddle does not reach; fix: copy it", lambda: heddle.relu(Plain(good, [2], device=(10, 1))))
        self.says("memory of device type 99 0", lambda: heddle.relu(Plain(good, [2], device=(99, 0))))
        self.says("'x' is an array of (5, 64, 1), DLPack's type code 5 of 64 bits and 1 lane, which is none of Heddle's types; fix: convert it to one of bool, i8",
                  lambda: heddle.relu(Plain(good, [1], dtype=(5, 64, 1))))
        self.says("type code 2 of 32 bits and 2 lanes", lambda: heddle.relu(Plain(good, [1], dtype=(2, 32, 2))))
        self.says("type code 17 of 4 bits and 2 lanes", lambda: heddle.relu(Plain(good, [1], dtype=(17, 4, 2), flags=4)))
        self.says("version 2.0 of DLPack, of which Heddle reads version 1", lambda: heddle.relu(Plain(good, [2], version=(2, 0))))
        self.says("relu: 'x' is an array of extents [2, 2, 2] and strides [2, 4, 1], whose leading modes are no rows",
                  lambda: heddle.relu(Plain(range(8), [2, 2, 2], (2, 4, 1))))
        with mock.patch.object(Plain, "NAME", USED):
            self.says("__dlpack__ gave PyCapsule, and no capsule of DLPack that nobody has taken over", lambda: heddle.relu(Plain(good, [2])))
        self.says("relu: -2 is no stream", lambda: heddle.relu(Plain(good, [2]), stream=-2))
        self.says("list is no array that Heddle knows; fix: give 'a'", lambda: heddle.add([1, 2], [3, 4]))

    def test_what_may_not_be_written(self):
        x = Plain([1, 2], [2])
        said = "relu: 'y' is written, and its library lets nobody write it; fix: give another array, or none"
        self.says(said, lambda: heddle.relu(x, y=Plain([0, 0], [2], flags=1)))
        with mock.patch.object(Old, "__module__", "jaxlib.thing"):
            self.says(said, lambda: heddle.relu(x, y=Old([0, 0], [2])))


class Gpu:
    """In the place of heddle.library.Device."""

    def __init__(self, name):
        self.name, self.told, self.fails = name, [], False

    def compile(self, operation, settings, tensors):
        made = mock.Mock()
        made.pointers = list

        def launch(pointers, stream):
            self.told.append(("launch", pointers, stream))
            if self.fails:
                raise heddle.HeddleError("it went wrong")
        made.launch = launch
        return made

    def allocate(self, size):
        self.told.append(("allocate", size))
        return 1 << 20

    def free(self, address):
        self.told.append(("free", address))

    def synchronize(self):
        self.told.append(("synchronize",))


class OnAGpu(unittest.TestCase):
    def setUp(self):
        self.gpus = {}
        for module in (sys.modules["heddle.operation"], heddle.dlpack):
            patch = mock.patch.object(module, "device", lambda name: self.gpus.setdefault(name, Gpu(name)))
            patch.start()
            self.addCleanup(patch.stop)
        heddle.relu._plans.clear()
        self.addCleanup(heddle.relu._plans.clear)

    def array(self, device=(2, 0)):
        return Plain([1, 2], [2], device=device)

    def test_streams(self):
        # What is given, what the library is told, and what is launched on.
        for given, told, launched in ((None, 1, 0), (0, 1, 0), (1, 1, 1), (2, 2, 2), (1 << 40, 1 << 40, 1 << 40)):
            x = self.array()
            heddle.relu(x, stream=given)
            self.assertEqual(x.asked, [{"max_version": (1, 1), "stream": told}])
            kind, (read, written), stream = [line for line in self.gpus["cuda:0"].told if line[0] == "launch"][-1]
            self.assertEqual((read, written, stream), (ctypes.addressof(x.kept[0]), 1 << 20, launched))
            self.assertEqual(sys.getrefcount(x.capsules[0]), 2)

    def test_the_call_is_complete(self):
        heddle.relu(self.array())
        self.assertEqual([line[0] for line in self.gpus["cuda:0"].told], ["allocate", "launch", "synchronize", "free"])
        self.gpus["cuda:0"].told.clear()
        self.gpus["cuda:0"].fails = True
        with self.assertRaisesRegex(heddle.HeddleError, "it went wrong"):
            heddle.relu(self.array())
        self.assertEqual([line[0] for line in self.gpus["cuda:0"].told], ["allocate", "launch", "synchronize", "free"])

    def test_devices(self):
        y = heddle.relu(self.array((2, 3)))
        self.assertEqual((y.device, y.__dlpack_device__()), ("cuda:3", (2, 3)))
        for stream in (0, -2):
            with self.assertRaisesRegex(ValueError, "is no stream for an array on cuda:3; fix: 1, the legacy default stream"):
                y.__dlpack__(stream=stream)
        heddle.relu(self.array((13, 0)))  # managed memory
        self.assertIn("cuda:0", self.gpus)
        with self.assertRaisesRegex(heddle.HeddleError, "its tensors are on different devices: a is on cuda:0, b is on cuda:1; fix: copy them to one"):
            heddle.add(self.array(), self.array((2, 1)))
        with self.assertRaisesRegex(heddle.HeddleError, "add: its tensors have no kind in common: a is Plain on cuda:0, b is Plain on the host; fix: give"):
            heddle.add(self.array(), self.array((1, 0)))


if __name__ == "__main__":
    unittest.main()
