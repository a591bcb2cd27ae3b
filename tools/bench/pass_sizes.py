"""Counts the instructions of kernels without one pass of the optimiser after the other. It needs no GPU.

    pass_sizes.py HEDDLE OUT [--only PASS...]
        HEDDLE: the command; OUT: folder for pass_sizes.json

Every kernel of `heddle list` is compiled to SASS with O3 and with "O3,-PASS" for each pass of O3 but promote-vars, which code
generation needs, by each type of elements that it can have. A figure is the kernel's instructions without the pass over those with
all, no-ops left out: instructions as they stand in the program, not as they run.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import subprocess

from gpu_machine import output
from passes import TOLD_APART, pipelines, write


def variants_of(kernel):
    """A kernel's settings to look at: the default, each type of elements, and an epilogue that does everything."""
    choices = {setting["name"]: setting["choices"] for setting in kernel["settings"]}
    settings = [()] + [(f"dtype={dtype}",) for dtype in choices.get("dtype", [])[1:]]
    return settings + [(f"epilogue={name}",) for name in choices.get("epilogue", [])[-1:]]


def instructions(heddle, kernel, settings, passes):
    """What the assembler makes of an operation's kernels; None where they cannot be compiled so."""
    command = [heddle, "dump", kernel, "--stage", "sass", "--stats", "--json", "--passes", passes]
    for setting in settings:
        command += ["--set", setting]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        return None
    found = json.loads(ran.stdout)
    counts = [one["stats"]["sass"] for one in (found if isinstance(found, list) else [found])]
    return sum(sass["total"] - sass["by_opcode"].get("NOP", 0) for sass in counts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("heddle")
    parser.add_argument("out")
    parser.add_argument("--only", nargs="*", default=[], help="these passes alone")
    options = parser.parse_args()
    passes, level = pipelines(options.heddle)
    passes = {name: text for name, text in passes.items() if name in level and (not options.only or name in options.only)}
    kernels = [(kernel["name"], settings) for kernel in json.loads(output(options.heddle, "list", "--json"))
               for settings in variants_of(kernel)]
    jobs = [(name, settings, text) for name, settings in kernels for text in ["O3", *passes.values()]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = dict(zip(jobs, pool.map(lambda job: instructions(options.heddle, *job), jobs)))
    figures = []
    for name, text in passes.items():
        ratios, cannot = {}, []
        for kernel, settings in kernels:
            whole, without = counts[kernel, settings, "O3"], counts[kernel, settings, text]
            label = " ".join([kernel, *settings])
            if whole and not without:
                cannot.append(label)
            elif whole and abs(without / whole - 1) > TOLD_APART:
                ratios[label] = round(without / whole, 3)
        figures.append({"pass": name, "ratios": ratios, "cannot_be_compiled": cannot})
    os.makedirs(options.out, exist_ok=True)
    write(os.path.join(options.out, "pass_sizes.json"),
          {"benchmark": "pass_sizes", "command": "python3 tools/bench/pass_sizes.py HEDDLE OUT",
           "date": datetime.date.today().isoformat(), "kernels": len(kernels), "figures": figures})


if __name__ == "__main__":
    main()
