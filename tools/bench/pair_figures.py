"""Times kernels beside their CUDA C++ twins and writes the figures as JSON.

    pair_figures.py plain|library PROGRAMS OUT      PROGRAMS: folder with NAME_bench; OUT: folder for NAME.json

Compiles tools/bench/NAME/*.cu with `nvcc -O3 -arch=sm_90`. Beside the times stand, where ncu is at hand, the instructions that a
thread executes for an element (those of the warps by 32 lanes, over the elements) and the registers of a thread.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

from gpu_machine import compile_twins, machine, profile

HERE = os.path.dirname(os.path.abspath(__file__))
EXECUTED, REGISTERS = "smsp__inst_executed.sum", "launch__registers_per_thread"


def main():
    bench, programs, out = sys.argv[1:4]
    program = os.path.join(programs, bench + "_bench")
    with tempfile.TemporaryDirectory() as cubins:
        compile_twins(glob.glob(os.path.join(HERE, bench, "*.cu")), cubins)
        run = subprocess.run([program, cubins], stdout=subprocess.PIPE, text=True)
        kernels = profile([EXECUTED, REGISTERS], program, cubins, "--once")
    figures = json.loads(run.stdout)
    counted = [figure for figure in figures if "elements" in figure]
    for figure, ours, theirs in zip(counted, kernels[0::2], kernels[1::2]):
        for side, (name, metrics) in (("heddle", ours), ("nvcc", theirs)):
            # A kernel of the library has one name for all types of elements.
            assert ("cuda_" * (side == "nvcc") + figure["program"]).startswith(name), (name, figure["program"])
            figure[side + "_instructions"] = round(metrics[EXECUTED] * 32 / figure["elements"], 3)
            figure[side + "_registers"] = int(metrics[REGISTERS])
    with open(os.path.join(out, bench + ".json"), "w") as file:
        json.dump({**machine(f"python3 tools/bench/pair_figures.py {bench} PROGRAMS OUT", "nvcc"), "benchmark": bench,
                   "figures": figures},
                  file, indent=1, ensure_ascii=False)
        file.write("\n")
    sys.exit(run.returncode)


main()
