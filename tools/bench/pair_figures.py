"""Times kernels beside their CUDA C++ twins and writes the figures as JSON.

    pair_figures.py plain|library|learn|collectives PROGRAMS OUT      PROGRAMS: folder with NAME_bench; OUT: folder for NAME.json

Compiles tools/bench/NAME/*.cu with `nvcc -O3 -arch=sm_90`. Beside the times stand, where ncu is at hand, the instructions that a
thread executes for an element (those of the warps by 32 lanes, over the elements) and the registers of a thread: of a side
that launches several kernels the sum of the instructions, and the most registers. Where NAME has originals.json, the lines of
code (without comments and blanks) stand there too: of our file, and of the kernels and device functions of the public
original that the program follows.
"""
import glob
import itertools
import json
import os
import subprocess
import sys
import tempfile

from gpu_machine import compile_twins, machine, profile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
EXECUTED, REGISTERS = "smsp__inst_executed.sum", "launch__registers_per_thread"


def sides(kernels):
    """The kernels of each side, ours and the twin's by turns: a twin's are named cuda_..., and no others are."""
    return [list(side) for _, side in itertools.groupby(kernels, lambda kernel: kernel[0].startswith("cuda_"))]


def add_counts(figures, kernels):
    counted = [figure for figure in figures if "elements" in figure]
    all_sides = sides(kernels)
    assert len(all_sides) in (0, 2 * len(counted)), (len(all_sides), len(counted))
    for figure, ours, theirs in zip(counted, all_sides[0::2], all_sides[1::2]):
        names = [name for name, _ in theirs]
        assert "cuda_" + figure["program"] in names, (figure["program"], names)
        for side, launched in (("heddle", ours), ("nvcc", theirs)):
            executed = sum(metrics[EXECUTED] for _, metrics in launched)
            figure[side + "_instructions"] = round(executed * 32 / figure["elements"], 3)
            figure[side + "_registers"] = int(max(metrics[REGISTERS] for _, metrics in launched))


def code_lines(path):
    with open(path) as file:
        lines = [line.split("//")[0].strip() for line in file]
    return sum(1 for line in lines if line)


def add_lines(figures, bench):
    path = os.path.join(HERE, bench, "originals.json")
    if not os.path.exists(path):
        return
    with open(path) as file:
        originals = json.load(file)
    for figure in figures:
        original = originals[figure["program"]]
        figure["lines"] = code_lines(os.path.join(ROOT, "kernels", bench, original["file"]))
        figure["original_lines"] = original["lines"]
        figure["original"] = original["source"]


def main():
    bench, programs, out = sys.argv[1:4]
    program = os.path.join(programs, bench + "_bench")
    with tempfile.TemporaryDirectory() as cubins:
        compile_twins(glob.glob(os.path.join(HERE, bench, "*.cu")), cubins)
        run = subprocess.run([program, cubins], stdout=subprocess.PIPE, text=True)
        kernels = profile([EXECUTED, REGISTERS], program, cubins, "--once")
    figures = json.loads(run.stdout)
    add_counts(figures, kernels)
    add_lines(figures, bench)
    with open(os.path.join(out, bench + ".json"), "w") as file:
        json.dump({**machine(f"python3 tools/bench/pair_figures.py {bench} PROGRAMS OUT", "nvcc"), "benchmark": bench,
                   "figures": figures},
                  file, indent=1, ensure_ascii=False)
        file.write("\n")
    sys.exit(run.returncode)


if __name__ == "__main__":
    main()
