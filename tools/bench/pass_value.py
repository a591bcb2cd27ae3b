"""What each pass is worth: switches the passes of O3 off one by one, and compares the machine code of all kernels.

    pass_value.py HEDDLE [OUT] [--kernel NAME ...] [--arch SM]

HEDDLE: the heddle command, with ptxas (which runs at -O3) and a disassembler. OUT: a JSON file, by default
tools/bench/results/passes.json. A kernel's cost is its number of machine instructions, those in loops counted eight times
for each loop around them (`heddle explain --json`). `promote-vars` is needed by others, and stays.
"""
import argparse
import datetime
import json
import math
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
# A pass that is off elsewhere still needs these.
KEPT = {"promote-vars"}


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def pipeline(heddle):
    for level in json.loads(output(heddle, "passes", "--json"))["levels"]:
        if level["name"] == "O3":
            return level["passes"].split(",")
    raise SystemExit("pass_value.py: there is no level O3")


def measure(heddle, kernel, passes, arch):
    text = output(heddle, "explain", kernel, "--arch", arch, "--json", "--passes", ",".join(passes))
    if text is None:
        return None
    kernels = json.loads(text)
    kernels = kernels if isinstance(kernels, list) else [kernels]
    if any(not one["rows"]["sass"] for one in kernels):
        return None
    return {"cost": sum(line["cost"] for one in kernels for line in one["lines"]),
            "instructions": sum(len(one["rows"]["sass"]) for one in kernels),
            "registers": max(one.get("registers", 0) for one in kernels),
            "spilled": sum(one.get("spill_store_bytes", 0) for one in kernels)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("heddle")
    parser.add_argument("out", nargs="?", default=os.path.join(HERE, "results", "passes.json"))
    parser.add_argument("--kernel", action="append")
    parser.add_argument("--arch", default="sm_90a")
    given = parser.parse_args()
    full = pipeline(given.heddle)
    kernels = given.kernel or re.findall(r"^(\w+) ", output(given.heddle, "list"), re.M)
    names = [name for name in dict.fromkeys(full) if name not in KEPT]
    jobs = {(kernel, off): [name for name in full if name != off] for kernel in kernels for off in [""] + names}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(jobs, pool.map(lambda job: measure(given.heddle, job[0], jobs[job], given.arch), jobs)))

    rows = []
    for name in names:
        ratios = {kernel: found[kernel, name]["cost"] / found[kernel, ""]["cost"] for kernel in kernels
                  if found[kernel, ""] and found[kernel, name]}
        refused = [kernel for kernel in kernels if found[kernel, ""] and not found[kernel, name]]
        order = sorted(ratios, key=ratios.get, reverse=True)
        rows.append({"pass": name, "kernels": len(ratios),
                     "larger": sum(ratio > 1.005 for ratio in ratios.values()),
                     "smaller": sum(ratio < 0.995 for ratio in ratios.values()),
                     "geomean": math.exp(sum(map(math.log, ratios.values())) / len(ratios)),
                     "most": {kernel: ratios[kernel] for kernel in order[:3] if ratios[kernel] > 1.005},
                     "least": {kernel: ratios[kernel] for kernel in order[:-4:-1] if ratios[kernel] < 0.995},
                     "not_compiled": refused})
        print(f"{name:18} larger without it: {rows[-1]['larger']:2} of {len(ratios)}, geomean {rows[-1]['geomean']:.3f}",
              ", ".join(f"{kernel} {ratio:.2f}" for kernel, ratio in rows[-1]["most"].items()))
    ptxas = re.search(r"ptxas\s+(\S.*)", output(given.heddle, "env") or "")
    with open(given.out, "w") as file:
        json.dump({"what": "machine code without each pass of O3 beside that with all", "arch": given.arch,
                   "ptxas": ptxas.group(1).split(" at ")[0].strip() if ptxas else "", "date": datetime.date.today().isoformat(),
                   "passes": rows}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
