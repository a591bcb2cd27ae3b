"""Times plain kernels beside their CUDA C++ twins and writes the figures as JSON.

    plain_figures.py PROGRAMS OUT      PROGRAMS: folder with plain_bench; OUT: folder for plain.json

Compiles tools/bench/plain/*.cu with `nvcc -O3 -arch=sm_90`. Beside the times stand, where ncu is at hand, the instructions that a
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
    programs, out = sys.argv[1], sys.argv[2]
    program = os.path.join(programs, "plain_bench")
    with tempfile.TemporaryDirectory() as cubins:
        compile_twins(glob.glob(os.path.join(HERE, "plain", "*.cu")), cubins)
        run = subprocess.run([program, cubins], stdout=subprocess.PIPE, text=True)
        kernels = profile([EXECUTED, REGISTERS], program, cubins, "--once")
    figures = json.loads(run.stdout)
    counted = [figure for figure in figures if "elements" in figure]
    for figure, ours, theirs in zip(counted, kernels[0::2], kernels[1::2]):
        for side, (name, metrics) in (("heddle", ours), ("nvcc", theirs)):
            assert name == ("cuda_" if side == "nvcc" else "") + figure["program"], (name, figure["program"])
            figure[side + "_instructions"] = round(metrics[EXECUTED] * 32 / figure["elements"], 3)
            figure[side + "_registers"] = int(metrics[REGISTERS])
    with open(os.path.join(out, "plain.json"), "w") as file:
        json.dump({**machine("python3 tools/bench/plain_figures.py PROGRAMS OUT", "nvcc"), "benchmark": "plain", "figures": figures},
                  file, indent=1, ensure_ascii=False)
        file.write("\n")
    sys.exit(run.returncode)


main()
