"""What ncu counts of products that gemm_bench times: the kernel that Heddle chooses beside its peers' fastest.

    gemm_profile.py GEMM_BENCH --json FILE [--only REGEX]...

For each product, of the fastest launch: its time, the clock, how long the tensor cores are busy, the throughput of L2 and
of device memory, and the bytes that memory moves. Clocks stay as they are. Under ncu each kernel runs alone, and its
caches are empty when it starts.
"""
import argparse
import json
import tempfile

from gpu_machine import machine, profile

METRICS = {
    "gpu__time_duration.sum": ("us", 1e-3),
    "smsp__cycles_elapsed.avg.per_second": ("mhz", 1e-6),
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": ("tensor_percent", 1),
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": ("l2_percent", 1),
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": ("memory_percent", 1),
    "dram__bytes.sum": ("memory_bytes", 1),
    "launch__registers_per_thread": ("registers", 1),
}
# Those of which aims are missed, and one of each kind besides.
PRODUCTS = ["bf16 tn 4096x4096x4096$", "bf16 tn 8192x8192x8192$", "bf16 tn 8192x8192x1024$", "bf16 tn 4096x11008x4096$",
            "bf16 tn 2048x2048x2048$", "bf16 tn 16x8192x8192$", "bf16 tn 128x4096x4096$", "tf32 tn 8192x8192x8192$",
            "e4m3 tn 8192x8192x8192$", "row-scaled 8192x8192x8192$", "block-scaled 8192x8192x8192$",
            "bf16 tn 1024x1024x1024$", "bf16 tn 1536x1536x1536$", "bf16 tn 4096x4096x1024$",
            "grouped 8 x 4096x4096x7168$", "grouped 64 x 128x4096x7168$",
            "masked 32 x 128x4096x7168$"]
# What gemm_bench launches besides.
OTHERS = ("fill", "compare", "spin", "void cublasLt::splitKreduce")
MOST_LAUNCHES = 60


def measure(program, product):
    """By contender: its fastest launch."""
    with tempfile.NamedTemporaryFile(suffix=".json") as figures:
        launches = profile(METRICS, program, "--only", product, "--rounds", "1", "--no-sustained", "--json", figures.name,
                           options=("--launch-count", str(MOST_LAUNCHES)))
    fastest = {}
    for name, values in launches:
        if name.startswith(OTHERS):
            continue
        figure = {key: round(values[metric] * unit, 2) for metric, (key, unit) in METRICS.items()}
        contender = "heddle" if name.startswith("gemm") else "cutlass" if "cutlass" in name else "cublas"
        if contender not in fastest or figure["us"] < fastest[contender]["us"]:
            fastest[contender] = {"kernel": name, **figure}
    return fastest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--json", required=True)
    parser.add_argument("--only", action="append", help="products whose name this finds (default: those with missed aims)")
    options = parser.parse_args()
    result = {**machine("gemm_profile.py gemm_bench --json gemm_profile.json"), "products": []}
    for product in options.only or PRODUCTS:
        result["products"].append({"product": product.rstrip("$"), **measure(options.program, product)})
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(result, out, indent=2)
            out.write("\n")


if __name__ == "__main__":
    main()
