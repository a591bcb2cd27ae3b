"""Times kernels without one pass of the optimiser after the other, and says what each pass is worth.

    passes.py PROGRAMS OUT [--rounds N] [--budget SECONDS] [--only PASS...] [--kernels learn|plain|layouts|row_sum|rows|gemm...]
        PROGRAMS: folder with learn_bench, plain_bench, row_sum_bench, rows_bench, layout_kernels_bench and gemm_bench
        OUT: folder for passes.json; what it says of passes that are not measured stays

Every program runs with HEDDLE_PASSES=O3 and with "O3,-PASS" for each pass of O3 but promote-vars, which code generation needs,
in an order that changes each round; passes that O3 does not run are added to it instead. A figure is the median over the rounds of a
kernel's time without the pass over its time with all; above 1 the pass pays.
"""
import argparse
import glob
import json
import os
import random
import statistics
import subprocess
import tempfile
import time

from gpu_machine import compile_twins, machine, output

HERE = os.path.dirname(os.path.abspath(__file__))
# A ratio further from 1 than this is told from noise.
TOLD_APART = 0.02
# So is a smaller one of several rounds that differ by less than it is from 1.
ROUNDS_TOLD_APART = 3
# Nor is one of kernels that take less, in microseconds.
SHORTEST = 20


def figures_of(text):
    found = json.loads(text)
    return found["figures"] if isinstance(found, dict) and "figures" in found else found


class Programs:
    """What is timed: each program gives, by kernel, microseconds and those of a yardstick that no pass changes, or 1; of a kernel that
    cannot run, why."""

    def __init__(self, folder, cubins):
        self.folder, self.cubins = folder, cubins

    def run(self, name, env, *arguments):
        """What a program prints."""
        command = [os.path.join(self.folder, name), *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=env, check=True).stdout

    def learn(self, env):
        return {f["program"]: (f["heddle_us"], f["nvcc_us"]) for f in figures_of(self.run("learn_bench", env, self.cubins, "--times"))}

    def plain(self, env):
        return {f"{f['program']} {f['size']}": (f["heddle_us"], f.get("nvcc_us") or f["copy_us"])
                for f in figures_of(self.run("plain_bench", env, self.cubins, "--times"))}

    def layouts(self, env):
        return {f"{f['program']} {f['size']}": (f["heddle_us"], 1)
                for f in figures_of(self.run("layout_kernels_bench", env))}

    def row_sum(self, env):
        times = {}
        for dtype, rows, columns in [("f32", 16384, 8192), ("bf16", 8192, 8192), ("bf16", 65536, 1025)]:
            text = self.run("row_sum_bench", env, "--dtype", dtype, "--rows", str(rows), "--columns", str(columns))
            figure = json.loads(text)
            times[f"row_sum {dtype} {rows} × {columns}"] = (figure["heddle_us"], figure["copy_us"])
        return times

    def gemm(self, env):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "gemm.json")
            self.run("gemm_bench", env, "--json", path, "--rounds", "8", "--no-sustained", "--only",
                     "^bf16 tn (4096x4096x4096|mma.sync|bias_gelu_residual 4096x4096x4096)")
            with open(path) as file:
                return {f"gemm {f['shape']}": self.gemm_figure(**f["contenders"]["heddle"]) for f in figures_of(file.read())}

    @staticmethod
    def gemm_figure(us=None, skipped="", **_):
        # Behind the first line, which says what happened, the message says why.
        return (us, 1) if us else skipped.splitlines()[:2][-1].strip()

    def rows(self, env):
        text = self.run("rows_bench", env, "--only", "^(softmax|layer_norm|softmax_backward) (f32|bf16) (1023|8192|131071)$")
        return {f"{f['kernel']} {f['dtype']} {f['columns']}": (f["heddle_us"], f["copy_us"]) for f in figures_of(text)}

    ALL = {"learn": learn, "plain": plain, "layouts": layouts, "row_sum": row_sum, "rows": rows, "gemm": gemm}

    def time(self, kernels, env):
        """Microseconds by kernel, and why programs and kernels cannot run."""
        times, left_out = {}, {}
        for name in kernels:
            try:
                for kernel, found in self.ALL[name](self, env).items():
                    (left_out if isinstance(found, str) else times)[kernel] = found
            except subprocess.CalledProcessError as why:
                left_out[name] = "".join(why.stderr.strip().splitlines()[-1:])
        return times, left_out


def pipelines(heddle):
    """By pass: O3 without it, or with it for passes that O3 does not run."""
    text = output(heddle, "passes", "--json")
    listing = json.loads(text)
    level = next(level["passes"] for level in listing["levels"] if level["name"] == "O3").split(",")
    passes = {}
    for one in (p["name"] for p in listing["passes"]):
        if one not in level:
            passes[one] = ",".join(level[:level.index("vectorize")] + [one] + level[level.index("vectorize"):])
        elif one != "promote-vars":
            passes[one] = f"O3,-{one}"
    return passes, level


def told_apart(rounds):
    """Whether the ratios of the rounds are more than noise."""
    least = min(abs(ratio - 1) for ratio in rounds)
    return abs(statistics.median(rounds) - 1) > TOLD_APART or (len(rounds) >= ROUNDS_TOLD_APART and max(rounds) - min(rounds) < least)


def figure_of(name, text, in_level, times, left_out):
    """What a pass is worth, of what was timed without it and with all."""
    ratios = {}
    for kernel in times[""][0]:
        pairs = [(a[kernel], b[kernel]) for a, b in zip(times[name], times[""]) if kernel in a and kernel in b]
        if pairs and pairs[0][1][0] >= SHORTEST:
            ratios[kernel] = [a[0] / a[1] / (b[0] / b[1]) for a, b in pairs]
    told = {kernel: round(statistics.median(rounds), 3) for kernel, rounds in ratios.items() if told_apart(rounds)}
    return {"pass": name, "passes": text, "in_O3": in_level, "ratios": told, "left_out": left_out[name],
            **({"rounds": len(times[name])} if len(times[name]) > 1 else {})}


def record_of(passes, level, times, left_out, kept, command):
    """What was measured so far, and of other passes and kernels what is known from before."""
    figures = [figure_of(name, text, name in level, times, left_out) for name, text in passes.items() if times[name]]
    measured = [figure["pass"] for figure in figures]
    figures += [figure for figure in kept.get("figures", []) if figure["pass"] not in measured]
    us = {kernel: statistics.median(run[kernel][0] for run in times[""] if kernel in run) for kernel in times[""][0]}
    return {**machine(command), "benchmark": "passes", "rounds": len(times[""]), "us": {**kept.get("us", {}), **us},
            "figures": figures}


def write(path, record):
    with open(path, "w") as file:
        json.dump(record, file, indent=1, ensure_ascii=False)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs")
    parser.add_argument("out")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds after which nothing further begins")
    parser.add_argument("--only", nargs="*", default=[], help="these passes alone")
    parser.add_argument("--kernels", nargs="*", default=list(Programs.ALL), choices=list(Programs.ALL), help="of these programs")
    options = parser.parse_args()
    passes, level = pipelines(os.path.join(options.programs, "heddle"))
    passes = {name: text for name, text in passes.items() if not options.only or name in options.only}
    os.makedirs(options.out, exist_ok=True)
    path = os.path.join(options.out, "passes.json")
    kept = {}
    if os.path.exists(path):
        with open(path) as file:
            kept = json.load(file)
    command = f"python3 tools/bench/passes.py PROGRAMS OUT --rounds {options.rounds} --kernels {' '.join(options.kernels)}"
    variants = {"": "O3", **passes}
    times = {name: [] for name in variants}
    left_out = {name: {} for name in variants}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as cubins:
        compile_twins(glob.glob(os.path.join(HERE, "learn", "*.cu")) + glob.glob(os.path.join(HERE, "plain", "*.cu")), cubins)
        programs = Programs(options.programs, cubins)
        turns = []
        for number in range(options.rounds):
            order = [name for name in variants if name]
            random.Random(number).shuffle(order)
            turns += ["", *order]
        for name in turns:
            if time.monotonic() - began > options.budget:
                break
            run, failed = programs.time(options.kernels, {**os.environ, "HEDDLE_PASSES": variants[name]})
            times[name].append(run)
            left_out[name].update(failed)
            print(f"{variants[name]}: {time.monotonic() - began:.0f} s", flush=True)
            # At once, as a machine may be taken back before the end.
            write(path, record_of(passes, level, times, left_out, kept, command))


if __name__ == "__main__":
    main()
