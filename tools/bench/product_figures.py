"""The ladder of products of kernels/learn/product, which product_bench measures, as a table.

    python3 tools/bench/product_figures.py FILE.json        prints it
"""
import json
import sys

# TFLOP/s of bf16 on tensor cores, dense, as the vendor's data sheets have them.
PEAKS = {"NVIDIA H100": 989, "NVIDIA H200": 989}


def peak_of(gpu):
    """The peak of a GPU, or None where it is not known."""
    return next((peak for name, peak in PEAKS.items() if gpu.startswith(name)), None)


def cells(rung, peak):
    if "tflop_per_s" not in rung:
        return ["–", "–"]
    rate = rung["tflop_per_s"]
    return [f"{rate:.1f}" if rate < 100 else f"{rate:.0f}", f"{100 * rate / peak:.1f} %" if peak else "–"]


def table(data):
    peak = peak_of(data["gpu"])
    of = f", and their share of the tensor cores' {peak}" if peak else ""
    lines = [f"The ladder of products in `kernels/learn/product`, bf16 with sums in f32, on an {data['gpu']} "
             f"(driver {data['driver']},", f"{data['date']}), in bursts of {data['burst']} after {data['idle_ms']} ms "
             f"without work; medians of {data['rounds']} rounds. TFLOP/s{of}:", "",
             "| Rung | " + " | ".join(f"{f['m']}³ | of peak" for f in data["figures"]) + " | What changed |",
             "|---|" + "---|---|" * len(data["figures"]) + "---|"]
    for number, rung in enumerate(data["figures"][0]["rungs"]):
        ladder = rung["rung"] != "gemm"
        row = [f"{number + 1} {rung['rung']}" if ladder else f"`{rung['rung']}`"]
        for figure in data["figures"]:
            row += cells(figure["rungs"][number], peak)
        lines.append("| " + " | ".join(row + [rung["change"]]) + " |")
    return lines


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        print("\n".join(table(json.load(file))))
