"""What the functions of float cost beside CUDA's, as JSON.

    math_cost_figures.py PROGRAMS OUT      PROGRAMS: folder with math_cost_bench; OUT: folder for math_cost.json

Compiles tools/bench/math/functions.cu with `nvcc -O3 -arch=sm_90`. A figure is the ratio of our time to CUDA's and, where ncu
is at hand, how many instructions a value takes: those that warps execute, less those of a kernel that only multiplies.
"""
import json
import os
import sys
import tempfile

from gpu_machine import compile_twins, output, profile

HERE = os.path.dirname(os.path.abspath(__file__))
EXECUTED = "smsp__inst_executed.sum"
VALUES = 132 * 8 * 4 * 256 // 32 * 64  # that the warps of a kernel compute


def main():
    programs, out = sys.argv[1], sys.argv[2]
    program = os.path.join(programs, "math_cost_bench")
    with tempfile.TemporaryDirectory() as cubins:
        compile_twins([os.path.join(HERE, "math", "functions.cu")], cubins)
        figures = json.loads(output(program, cubins))
        executed = {name: metrics[EXECUTED] for name, metrics in profile([EXECUTED], program, cubins, "--once")}
    for figure in figures["figures"]:
        for side in ("heddle", "cuda"):
            count = executed.get(f"{side}_{figure['program']}")
            if count:
                figure[f"{side}_instructions"] = round((count - executed[f"{side}_nothing"]) / VALUES, 1)
        print(json.dumps(figure))
    figures["command"] = "python3 tools/bench/math_cost_figures.py PROGRAMS OUT"
    with open(os.path.join(out, "math_cost.json"), "w") as file:
        json.dump(figures, file, indent=1)
        file.write("\n")


main()
