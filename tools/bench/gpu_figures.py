"""Runs the GPU benchmarks and writes their figures as JSON.

    gpu_figures.py PROGRAMS OUT      PROGRAMS: folder with row_sum_bench and launch_bench; OUT: for files

Heddle, the copy and torch are measured in turn, three times each, in processes of their own on the
same GPU; a figure is the median of the three.
"""
import json
import os
import statistics
import sys

from gpu_machine import machine, output

HERE = os.path.dirname(os.path.abspath(__file__))
SHAPES = [(dtype, n, n) for n in (16384, 8192) for dtype in ("f32", "bf16")]
REPEATS = 3


def medians(rows):
    return {key: statistics.median(row[key] for row in rows) if isinstance(rows[0][key], float) else rows[0][key]
            for key in rows[0]}


def row_sum(programs):
    figures = []
    for dtype, rows, columns in SHAPES:
        ours, theirs = [], []
        for _ in range(REPEATS):
            size = [str(rows), str(columns)]
            ours.append(json.loads(output(os.path.join(programs, "row_sum_bench"), "--dtype", dtype,
                                          "--rows", size[0], "--columns", size[1])))
            theirs.append(json.loads(output(sys.executable, os.path.join(HERE, "row_sum_torch.py"), dtype, *size)))
        figure = {**medians(ours), **medians(theirs)}
        figure["of_copy"] = figure["heddle_gb_per_s"] / figure["copy_gb_per_s"]
        figure["of_torch"] = figure["torch_us"] / figure["heddle_us"]
        figures.append(figure)
        print(json.dumps(figure), flush=True)
    return figures


def main():
    programs, out = sys.argv[1], sys.argv[2]
    about = machine("python3 tools/bench/gpu_figures.py PROGRAMS OUT")
    launch = json.loads(output(os.path.join(programs, "launch_bench")))
    print(json.dumps(launch), flush=True)
    files = {"launch": {**about, **launch}, "row_sum": {**about, "benchmark": "row_sum", "figures": row_sum(programs)}}
    for name, figures in files.items():
        with open(os.path.join(out, name + ".json"), "w") as file:
            json.dump(figures, file, indent=2)
            file.write("\n")


main()
