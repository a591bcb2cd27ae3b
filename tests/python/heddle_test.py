"""The Python package on arrays of the host, which the interpreter works on: shapes, settings, results, errors.

    HEDDLE_LIBRARY=libheddle.so PYTHONPATH=tools/python python3 heddle_test.py
"""
import array
import math
import struct
import sys
import tempfile
import unittest

import heddle


def floats(values, shape):
    return memoryview(bytearray(struct.pack(f"{len(values)}f", *values))).cast("f", shape)


def flat(view):
    return list(memoryview(view).cast("B").cast(memoryview(view).format))


class Operations(unittest.TestCase):
    def test_results_have_the_shape_of_their_inputs(self):
        values = [0.1 * i for i in range(24)]
        y = heddle.softmax(floats(values, [2, 3, 4]))
        self.assertEqual(y.shape, (2, 3, 4))
        for row in range(6):
            exps = [math.exp(v) for v in values[4 * row:4 * row + 4]]
            for have, want in zip(flat(y)[4 * row:4 * row + 4], exps):
                self.assertAlmostEqual(have, want / sum(exps), places=6)

    def test_one_mode_is_one_row(self):
        y = heddle.softmax(array.array("f", [1, 1, 1, 1]))
        self.assertEqual((y.shape, flat(y)), ((4,), [0.25] * 4))

    def test_settings_and_several_results(self):
        values, indices = heddle.topk(floats([3, 1, 4, 1, 5, 9, 2, 6], [2, 4]), k=2)
        self.assertEqual((values.shape, flat(values)), ((2, 2), [4, 3, 9, 6]))
        self.assertEqual((indices.format, flat(indices)), ("q", [2, 0, 1, 3]))
        least, _ = heddle.topk(floats([3, 1, 4, 1, 5, 9, 2, 6], [2, 4]), k=1, which="least")
        self.assertEqual(flat(least), [1, 2])

    def test_rows_of_results_are_the_leading_modes(self):
        x = floats(range(12), [2, 2, 3])
        sums = heddle.reduce(x)
        self.assertEqual((sums.shape, flat(sums)), ((2, 2), [3, 12, 21, 30]))
        for dim, shape, sums in (("first", (3,), [18, 22, 26]), ("all", (1,), [66])):
            y = heddle.reduce(x, dim=dim)
            self.assertEqual((y.shape, flat(y)), (shape, sums))
        columns = heddle.reduce(array.array("f", [1, 2]), dim="first")
        self.assertEqual((columns.shape, flat(columns)), ((2,), [1, 2]))
        places = heddle.reduce(x, op="argmax")
        self.assertEqual((places.format, flat(places)), ("q", [2, 2, 2, 2]))

    def test_into_what_is_given(self):
        x, y = floats([1, 2, 3, 4], [2, 2]), floats([0] * 4, [2, 2])
        self.assertEqual(heddle.relu(x, y=y), ())
        self.assertEqual(flat(y), [1, 2, 3, 4])
        counts = floats([1, 0, 0, 0, 0, 0], [3, 2])
        heddle.embedding_backward(memoryview(array.array("q", [2, 0])), x, dtable=counts)
        self.assertEqual(flat(counts), [4, 4, 0, 0, 1, 2])

    def test_element_types_are_the_inputs(self):
        whole = heddle.cast(floats([1.5, -2.5, 3, 4], [2, 2]), to="i32")
        self.assertEqual((whole.format, whole.shape, flat(whole)), ("i", (2, 2), [1, -2, 3, 4]))
        self.assertEqual(flat(heddle.cast(whole, to="f32")), [1, -2, 3, 4])
        sums = heddle.reduce(memoryview(array.array("i", [1, 2, 3])))
        self.assertEqual((sums.format, flat(sums)), ("q", [6]))

    def test_gradients_of_elementwise_functions(self):
        x, dy = [-2.0, -0.5, 0.0, 0.5, 2.0, 30.0], [1.0] * 6
        step = 1e-4
        functions = {"relu": lambda v: max(v, 0), "silu": lambda v: v / (1 + math.exp(-v)),
                     "gelu": lambda v: v * (1 + math.erf(v / math.sqrt(2))) / 2}
        for name, function in functions.items():
            dx = flat(getattr(heddle, name + "_backward")(floats(x, [1, 6]), floats(dy, [1, 6])))
            for have, v in zip(dx, x):
                want = 0 if (name, v) == ("relu", 0) else (function(v + step) - function(v - step)) / (2 * step)
                self.assertAlmostEqual(have, want, places=3, msg=f"{name} at {v}")

    def test_many_settings_do_not_fill_the_memory(self):
        module = sys.modules["heddle.operation"]
        most, module.MOST_PLANS = module.MOST_PLANS, 4
        try:
            x = floats([1, 2, 3, 4], [2, 2])
            for i in range(20):
                heddle.dropout(x, seed=i)
            self.assertLessEqual(len(heddle.dropout._plans), 4)
        finally:
            module.MOST_PLANS = most

    def test_every_operation_is_there(self):
        self.assertIn("softmax", dir(heddle))
        self.assertGreater(len(heddle.operations()), 60)
        self.assertIn("rows", heddle.operation("softmax").__doc__ + "rows")
        self.assertIn("topk(x, values, indices, dtype=f32, which=greatest, k=8)", heddle.topk.__doc__)


class WarmUp(unittest.TestCase):
    def test_compiles_what_a_list_has(self):
        with tempfile.NamedTemporaryFile("w", suffix=".list") as file:
            file.write("call row_sum x:f32[5,11]{11,1} y:f32[5]{1}\ncall nothing\n")
            file.flush()
            seen = []
            report = heddle.warm_up(file.name, device="interp", threads=1, progress=lambda *what: seen.append(what))
            self.assertEqual((report["lines"], report["warmed"], report["kernels"]), (2, 1, 1))
            self.assertEqual(report["skipped"], [{"line": 2, "what": "call nothing", "why": "there is no operation 'nothing'"}])
            self.assertEqual(seen, [(1, 1, "call of row_sum", None)])

            def refuse(*_):
                raise KeyError("mine")
            with self.assertRaisesRegex(KeyError, "mine"):
                heddle.warm_up(file.name, device="interp", progress=refuse)
            file.write("kernel")
            file.flush()
            with self.assertRaisesRegex(heddle.HeddleError, "line 3 is damaged: the kernel's name is missing"):
                heddle.warm_up(file.name, device="interp")


class Errors(unittest.TestCase):
    def says(self, text, call, kind=heddle.HeddleError):
        with self.assertRaises(kind) as raised:
            call()
        self.assertIn(text, str(raised.exception))

    def test_mistakes(self):
        x = floats([1, 2, 3, 4], [2, 2])
        self.says("there is no operation 'softmx'; did you mean 'softmax'?", lambda: heddle.operation("softmx"))
        self.says("has no attribute 'softmx'", lambda: heddle.softmx, AttributeError)
        self.says("it takes tensors: x, y", lambda: heddle.softmax())
        self.says("it takes 2 tensors (x, y), not 3", lambda: heddle.softmax(x, x, x))
        self.says("it has no tensor or setting 'dim'; tensors: x, y; settings: dtype", lambda: heddle.softmax(x, dim=1))
        self.says("'x' is given twice", lambda: heddle.softmax(x, x=x))
        self.says("list is no array that Heddle knows", lambda: heddle.softmax([1, 2]))
        self.says("rms_norm: it reads 'w', which is not given", lambda: heddle.rms_norm(x))
        self.says("softmax: 'x' has elements of i32, and the operation takes f32, f16, bf16; fix: convert it", lambda: heddle.softmax(memoryview(array.array("i", [1, 2]))))
        self.says("k", lambda: heddle.topk(x, k=3))
        self.says("the leading extents of 'b' are [1, 4], and others' [2, 2]", lambda: heddle.add(floats([0] * 8, [2, 2, 2]), floats([0] * 8, [1, 4, 2])))
        # What the library says: of types, modes, extents, memory.
        row = floats([1, 2], [2])
        self.says("kernel 'rms_norm' takes f32", lambda: heddle.rms_norm(x, memoryview(array.array("i", [1, 2]))))
        self.says("'w' has extent 3 in mode 0, and kernel 'rms_norm' takes 2 there, columns of 'x'", lambda: heddle.rms_norm(x, floats([1, 2, 3], [3])))
        self.says("'w'", lambda: heddle.rms_norm(x, x))
        self.says("'y' has extent 3", lambda: heddle.relu(x, y=floats([0] * 6, [3, 2])))
        self.says("'kind'", lambda: heddle.scan(x, kind="sideways"))
        self.says("eps", lambda: heddle.rms_norm(x, row, eps="much"))
        self.says("eps", lambda: heddle.rms_norm(x, row, eps=[1]))
        heddle.topk(x, k=1)
        self.says("k", lambda: heddle.topk(x, k=True))
        self.says("NumPy", lambda: heddle.cast(x, to="bf16"))
        self.says("relu: 'y' is written, and its library lets nobody write it", lambda: heddle.relu(x, y=memoryview(bytes(16)).cast("f", [2, 2])))


if __name__ == "__main__":
    unittest.main()
