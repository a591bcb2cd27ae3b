"""The short way of calls (tools/python/native/calls.cc), on stand-ins for torch's tensors and for Heddle's launch.

    PYTHONPATH=<a folder with the package, built> python3 calls_test.py
"""
import ctypes
import sys
import unittest

try:
    from heddle._calls import Calls
except ImportError:
    print("SKIPPED: the package's native part is not built")
    sys.exit(77)


class Tensor:
    def __init__(self, shape, dtype="f32", address=4096, device=0, strides=None):
        self.shape, self.dtype, self._address, self._device = tuple(shape), dtype, address, device
        self._strides = strides or tuple(reversed([1, *shape[:0:-1]]))

    def stride(self):
        return self._strides

    def data_ptr(self):
        return self._address

    def get_device(self):
        return self._device


class Other(Tensor):
    """Of another type, such as a fake tensor."""


class Failed(Exception):
    pass


def fail(text):
    raise Failed(text)


LAUNCH = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p)


class ShortWay(unittest.TestCase):
    def setUp(self):
        self.launched, self.error = [], None
        self.count = 2

        def launch(call, pointers, stream):
            self.launched.append((call, [pointers[i] for i in range(self.count)], stream))
            return self.error
        self.function = LAUNCH(launch)
        self.calls = Calls(ctypes.cast(self.function, ctypes.c_void_p).value, (Tensor,), lambda device: 77 + device, fail)

    def add(self, arrays, named={}, order=(0, -1), makers=None, call=11, here=()):
        makers = [lambda: Tensor([2, 3], address=8192)] if makers is None else makers
        return self.calls.add(tuple(arrays), named, call, object(), list(order), makers, list(here))

    def test_what_was_added_is_found(self):
        self.assertIs(self.calls.run(Tensor([2, 3])), NotImplemented)
        self.assertTrue(self.add([Tensor([2, 3])]))
        result = self.calls.run(Tensor([2, 3], address=12288, device=0))
        self.assertEqual(result.data_ptr(), 8192)
        self.assertEqual(self.launched, [(11, [12288, 8192], 77)])

    def test_another_is_not(self):
        self.add([Tensor([2, 3])])
        for other in (Tensor([3, 2]), Tensor([2, 3], dtype="f16"), Tensor([2, 3], device=1), Tensor([2, 3], strides=(1, 2)), Tensor([6]),
                      Other([2, 3]), Tensor([2, 3], device=-1), 5):
            self.assertIs(self.calls.run(other), NotImplemented)
        self.assertIs(self.calls.run(), NotImplemented)
        self.assertIs(self.calls.run(Tensor([2, 3]), eps=1.0), NotImplemented)
        self.assertIs(self.calls.run(Tensor([2, 3]), Tensor([2, 3])), NotImplemented)
        self.assertEqual(self.launched, [])

    def test_settings_are_compared(self):
        self.add([Tensor([4])], {"eps": 1.5, "op": "max"}, call=1)
        self.add([Tensor([4])], {"eps": 2.5, "op": "max"}, call=2)
        self.add([Tensor([4])], {"k": 1}, call=3)
        for eps, call in ((2.5, 2), (1.5, 1), (3.0 / 2, 1)):
            self.calls.run(Tensor([4]), eps=eps, op="max")
            self.assertEqual(self.launched[-1][0], call)
        self.assertIs(self.calls.run(Tensor([4]), eps=1.5, op="min"), NotImplemented)
        self.assertIs(self.calls.run(Tensor([4]), k=True), NotImplemented)
        self.add([Tensor([4])], {"a": 0.0})
        self.assertIs(self.calls.run(Tensor([4]), a=-0.0), NotImplemented)
        self.assertIs(self.calls.run(Tensor([4]), k=1.0), NotImplemented)
        self.assertIs(self.calls.run(Tensor([4]), k=[1]), NotImplemented)
        self.assertEqual(len(self.calls), 4)

    def test_tensors_by_name_and_no_results(self):
        x, y = Tensor([4], address=100), Tensor([4], address=200)
        self.add([x], {"y": y}, order=(0, 1), makers=[])
        self.assertEqual(self.calls.run(Tensor([4], address=300), y=Tensor([4], address=400)), ())
        self.assertEqual(self.launched[-1][1], [300, 400])
        self.assertIs(self.calls.run(Tensor([4]), z=y), NotImplemented)

    def test_several_results(self):
        makers = [lambda: Tensor([1], address=1000), lambda: Tensor([1], address=2000)]
        self.count = 3
        self.add([Tensor([4])], order=(-2, 0, -1), makers=makers)
        results = self.calls.run(Tensor([4], address=5))
        self.assertEqual([r.data_ptr() for r in results], [1000, 2000])
        self.assertEqual(self.launched[-1][1], [2000, 5, 1000])

    def test_results_on_the_current_device(self):
        current = 1
        self.calls.set_current_device(lambda: current)
        self.add([Tensor([4], device=0)], here=[lambda: Tensor([4], address=16384)])
        self.assertEqual(self.calls.run(Tensor([4], device=0)).data_ptr(), 8192)
        current = 0
        self.assertEqual(self.calls.run(Tensor([4], device=0)).data_ptr(), 16384)

    def test_a_call_within_a_call(self):
        # Making a result may run anything, such as this operation on other tensors.
        def maker():
            self.calls.run(Tensor([9], address=64, device=1))
            return Tensor([4], address=8192)
        self.add([Tensor([9], device=1)], call=2)
        self.add([Tensor([4])], makers=[maker], call=1)
        self.calls.run(Tensor([4], address=128))
        self.assertEqual(self.launched, [(2, [64, 8192], 78), (1, [128, 8192], 77)])

    def test_errors(self):
        self.add([Tensor([4])])
        self.error = b"it went wrong"
        with self.assertRaisesRegex(Failed, "it went wrong"):
            self.calls.run(Tensor([4]))
        self.error = None

        def broken():
            raise ValueError("no memory")
        self.add([Tensor([5])], makers=[broken])
        with self.assertRaisesRegex(ValueError, "no memory"):
            self.calls.run(Tensor([5]))

    def test_nothing_is_lost(self):
        x = Tensor([4])
        made = Tensor([4])
        self.add([x], {"eps": 0.5}, makers=[lambda: made])
        before = sys.getrefcount(x), sys.getrefcount(made)
        for _ in range(1000):
            self.calls.run(x, eps=0.5)
        self.launched.clear()
        self.assertEqual((sys.getrefcount(x), sys.getrefcount(made)), before)


if __name__ == "__main__":
    unittest.main()
