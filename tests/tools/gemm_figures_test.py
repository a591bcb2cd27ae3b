"""Tests tools/bench/gemm_figures.py: on made-up figures, and on those that gemm_bench wrote to a file.

    gemm_figures_test.py GEMM_JSON
"""
import copy
import json
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True  # the source tree stays as it is
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "bench"))
import gemm_figures  # noqa: E402: found by the line above


def result(us, **more):
    return {"us": us, "tflop_per_s": 1000 / us, **more}


def product(groups, variant="", **contenders):
    return {"shape": "s", "dtype": "bf16", "layout": "tn", "variant": variant, "count": 1, "m": 1, "n": 2, "k": 3,
            "groups": groups, "contenders": contenders}


def page(aims, figures):
    return {"gpu": "GPU", "driver": "1", "date": "today", "burst": 8, "idle_ms": 250, "rounds": 5,
            "contenders": {"heddle": "", "plain": "", "cublas": "13", "cutlass": "4", "triton": "3"},
            "aims": [{"group": "g", "products": 2, "case": "case", **aim} for aim in aims], "figures": figures}


def reached(aim, figures):
    return gemm_figures.aims_table(page([aim], figures))[-1]


class Aims(unittest.TestCase):
    two = [product(["g"], heddle=result(10), cublas=result(11), cutlass=result(40)),
           product(["g"], heddle=result(20), cublas=result(18), cutlass=result(10))]

    def test_the_least_ratio_and_the_mean(self):
        aim = {"statistic": "min", "against": "cublas", "aim": 1.05}
        self.assertEqual(reached(aim, self.two), "| case | ≥ 1.05× cuBLAS | 0.90× | 2 of 2 |")
        aim = {"statistic": "geomean", "against": "cublas", "aim": 1}
        self.assertEqual(reached(aim, self.two), "| case | ≥ 1.00× cuBLAS, geomean | 0.99× | 2 of 2 |")

    def test_the_faster_of_two_peers(self):
        aim = {"statistic": "geomean", "against": "cublas|cutlass", "aim": 1}
        self.assertEqual(reached(aim, self.two), "| case | ≥ 1.00× cuBLAS and CUTLASS, geomean | 0.74× | 2 of 2 |")
        aim["against"] = "triton|cutlass"  # a peer that is missing
        self.assertEqual(reached(aim, self.two), "| case | ≥ 1.00× Triton and CUTLASS, geomean | – | 0 of 2 |")

    def test_the_plain_product(self):
        figures = [product(["g"], heddle=result(10.2), plain=result(10))]
        aim = {"statistic": "min", "against": "plain", "aim": 0.98}
        self.assertEqual(reached(aim, figures), "| case | ≥ 0.98× the plain product | 0.98× | 1 of 2 |")

    def test_aims_without_a_peer(self):
        figures = [product(["g"], heddle=result(1, to_ptx_ms=2, compile_ms=101, ptxas_ms=100)),
                   product(["g"], heddle=result(2, to_ptx_ms=4.26, compile_ms=120, ptxas_ms=100)), product(["g"])]
        rows = [({"statistic": "rate", "aim": 1450}, "| case | ≥ 1450 TFLOP/s | 500 TFLOP/s | 2 of 2 |"),
                ({"statistic": "to_ptx_ms", "aim": 5}, "| case | ≤ 5 ms | 4.3 ms | 2 of 2 |"),
                ({"statistic": "of_ptxas", "aim": 1.1}, "| case | ≤ 1.10× | 1.20× | 2 of 2 |")]
        for aim, line in rows:
            self.assertEqual(reached({"against": "", **aim}, figures), line)
        self.assertIn("| case | ≤ 5 ms | – | 0 of 2 |", reached({"against": "", **rows[1][0]}, []))


class Pages(unittest.TestCase):
    def test_says_what_is_missing_and_why(self):
        figures = [product(["g"], heddle=result(10, compile_ms=120, ptxas_ms=100, to_ptx_ms=4.1), triton=result(5)),
                   product(["g"], "mma.sync", heddle={"faults": {"all": "d is wrong"}}), product(["g"], "grouped")]
        figures[2].update(rows=[1, 2], count=2, left_out="the budget was spent")
        text = "\n".join(gemm_figures.tables(page([], figures)))
        self.assertIn("in turns with cuBLAS (13), CUTLASS (4) and Triton (3);", text)
        self.assertIn("| bf16 tn 1 × 2 × 3 | 10.0 µs | 100 | – | – | – | – | 200 | 0.50 |", text)
        self.assertIn("- bf16 tn, mma.sync 1 × 2 × 3: all: d is wrong", text)
        self.assertIn("- bf16 tn, grouped 2 groups of 1 × 2 × 3: the budget was spent", text)
        self.assertIn("slowest cold compile: 120 ms, of which ptxas takes 100 ms and all before it 4.1 ms", text)
        self.assertIn(">Triton</text>", gemm_figures.plot(page([], figures)))

    def test_what_gemm_bench_wrote(self):
        data = copy.deepcopy(DATA)
        variants = {f["variant"] for f in data["figures"]}
        self.assertEqual(variants, {"", "mma.sync", "row-scaled", "block-scaled", "bias_gelu_residual", "grouped", "masked"})
        for figure in data["figures"]:
            self.assertIsNone(gemm_figures.why_missing(figure), figure["shape"])
            self.assertNotIn("faults", figure["contenders"]["heddle"])
        text = "\n".join(gemm_figures.tables(data))
        self.assertRegex(text, r"the plain product's time over it \| ≥ 0.98× the plain product \| \d.\d\d× \| [1-4] of 4")
        self.assertIn("bf16 tn, masked 8 groups of 16 × 64 × 112", text)


if __name__ == "__main__":
    with open(sys.argv.pop()) as file:
        DATA = json.load(file)
    unittest.main()
