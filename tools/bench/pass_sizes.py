"""Counts the instructions of kernels without one pass of the optimiser after the other. It needs no GPU.

    pass_sizes.py PROGRAMS OUT [--only PASS...]
        PROGRAMS: folder with heddle and plain_bench; OUT: folder for pass_sizes.json

Every kernel of `heddle list`, by each type of elements that it can have, and of `plain_bench` is compiled to SASS with O3 and with
"O3,-PASS" for each pass of O3 but promote-vars, which code generation needs. A figure is the kernel's instructions without the pass over those with
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


def plain_instructions(programs, passes):
    """Those of the kernels of plain_bench, by kernel and size."""
    text = output(os.path.join(programs, "plain_bench"), "--sizes", env={**os.environ, "HEDDLE_PASSES": passes})
    return {(f["program"], f["size"]): f["instructions"] for f in json.loads(text)}


def count_all(programs, pool, texts):
    """By pipeline, the instructions of each kernel by its label."""
    heddle = os.path.join(programs, "heddle")
    kernels = [(kernel["name"], settings) for kernel in json.loads(output(heddle, "list", "--json"))
               for settings in variants_of(kernel)]
    jobs = [(text, *kernel) for text in texts for kernel in kernels]
    of_library = pool.map(lambda job: instructions(heddle, job[1], job[2], job[0]), jobs)
    of_plain = dict(zip(texts, pool.map(lambda text: plain_instructions(programs, text), texts)))
    counts = {text: {} for text in texts}
    for (text, name, settings), count in zip(jobs, of_library):
        counts[text][" ".join([name, *settings])] = count
    # Sizes that make the same program are counted once.
    programs_by_size = {}
    for kernel in of_plain["O3"]:
        programs_by_size.setdefault((kernel[0], tuple(of_plain[text][kernel] for text in texts)), kernel)
    for text in texts:
        for kernel in programs_by_size.values():
            counts[text]["plain " + " ".join(kernel)] = of_plain[text][kernel]
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs")
    parser.add_argument("out")
    parser.add_argument("--only", nargs="*", default=[], help="these passes alone")
    options = parser.parse_args()
    passes, level = pipelines(os.path.join(options.programs, "heddle"))
    passes = {name: text for name, text in passes.items() if name in level and (not options.only or name in options.only)}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = count_all(options.programs, pool, ["O3", *passes.values()])
    figures = []
    for name, text in passes.items():
        ratios, cannot = {}, []
        for kernel, whole in counts["O3"].items():
            without = counts[text][kernel]
            if whole and not without:
                cannot.append(kernel)
            elif whole and abs(without / whole - 1) > TOLD_APART:
                ratios[kernel] = round(without / whole, 3)
        figures.append({"pass": name, "ratios": ratios, "cannot_be_compiled": cannot})
    os.makedirs(options.out, exist_ok=True)
    write(os.path.join(options.out, "pass_sizes.json"),
          {"benchmark": "pass_sizes", "command": "python3 tools/bench/pass_sizes.py PROGRAMS OUT",
           "date": datetime.date.today().isoformat(), "kernels": len(counts["O3"]), "figures": figures})


if __name__ == "__main__":
    main()
