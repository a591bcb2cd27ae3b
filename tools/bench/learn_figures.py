"""Times the programs of kernels/learn beside their CUDA C++ twins and writes the figures as JSON.

    learn_figures.py PROGRAMS OUT      PROGRAMS: folder with learn_bench; OUT: folder for learn.json

Compiles tools/bench/learn/*.cu with `nvcc -O3 -arch=sm_90`. Beside the times stand the lines of code
(without comments and blanks) of our file and of the kernels and device functions of the public
original that the program follows.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

from gpu_machine import compile_twins, machine

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")


def code_lines(path):
    with open(path) as file:
        lines = [line.split("//")[0].strip() for line in file]
    return sum(1 for line in lines if line)


def main():
    programs, out = sys.argv[1], sys.argv[2]
    with open(os.path.join(HERE, "learn", "originals.json")) as file:
        originals = json.load(file)
    with tempfile.TemporaryDirectory() as cubins:
        compile_twins(glob.glob(os.path.join(HERE, "learn", "*.cu")), cubins)
        run = subprocess.run([os.path.join(programs, "learn_bench"), cubins], stdout=subprocess.PIPE, text=True)
    figures = json.loads(run.stdout)
    for figure in figures:
        original = originals[figure["program"]]
        figure["lines"] = code_lines(os.path.join(ROOT, "kernels", "learn", original["file"]))
        figure["original_lines"] = original["lines"]
        figure["original"] = original["source"]
    with open(os.path.join(out, "learn.json"), "w") as file:
        json.dump({**machine("python3 tools/bench/learn_figures.py PROGRAMS OUT", "nvcc"), "benchmark": "learn", "figures": figures}, file, indent=2, ensure_ascii=False)
        file.write("\n")
    sys.exit(run.returncode)


main()
