"""What `heddle profile` starts: runs a call under Nsight Compute, and says what bounds its kernels, and where they wait.

    python3 profile_kernel.py REQUEST

REQUEST is a file of JSON: {"library": libheddle.so, "heddle": the command, "device": "cuda:0", "case": {"kernel", "settings", "shape",
"sizes"}, "ncu": the profiler, "command": what was typed, "json": FILE, "html": FILE}. Exit: 0, or 1 where something failed."""
import collections
import csv
import datetime
import io
import json
import os
import subprocess
import sys
import tempfile

# The folder's modules are those of a package: so they hide none of others that have their names.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
from measure.files import fail, read_request, write  # noqa: E402
from measure.profile_page import page  # noqa: E402

# Of the profiler's details: what is kept of each kernel, and its name in the JSON.
METRICS = {"Duration": "duration_ns", "DRAM Throughput": "dram_percent", "L2 Cache Throughput": "l2_percent",
           "L1/TEX Cache Throughput": "l1_percent", "Issue Slots Busy": "issue_percent", "SM Busy": "sm_percent",
           "Memory Throughput": "dram_bytes_s", "Achieved Occupancy": "occupancy_percent",
           "Theoretical Occupancy": "occupancy_limit_percent", "Registers Per Thread": "registers", "Grid Size": "grid",
           "Block Size": "block", "Waves Per SM": "waves", "L2 Hit Rate": "l2_hit_percent",
           "Local Memory Spilling Requests": "spill_requests"}
# What warps wait for, by the profiler's columns.
STALLS = {"stall_barrier": "a barrier", "stall_branch_resolving": "a branch", "stall_dispatch": "dispatch",
          "stall_drain": "stores at the end", "stall_imc": "constant memory", "stall_lg": "the queue of global memory",
          "stall_long_sb": "global or local memory", "stall_math": "an arithmetic pipe", "stall_membar": "a fence",
          "stall_mio": "the queue of shared memory", "stall_no_inst": "instructions", "stall_not_selected": "other warps",
          "stall_selected": "nothing", "stall_short_sb": "shared memory or special functions", "stall_sleep": "a sleep",
          "stall_gmma": "tensor cores", "stall_tex": "textures", "stall_wait": "a fixed latency"}
# Of an instruction, beside samples: what a line adds up.
ADDED = {"Instructions Executed": "instructions", "L2 Theoretical Sectors Global": "sectors",
         "L2 Theoretical Sectors Global Excessive": "excessive_sectors", "L1 Wavefronts Shared": "wavefronts",
         "L1 Wavefronts Shared Excessive": "bank_conflicts"}
BUSY = 80  # percent of a unit's peak from which on it is what bounds a kernel
UNITS = {"dram_percent": "device memory", "l2_percent": "the L2 cache", "issue_percent": "the issue of instructions",
         "l1_percent": "the L1 cache and shared memory"}


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def run(*command):
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        lines = [one for one in (ran.stdout + ran.stderr).splitlines() if one.strip()]
        told = [one for one in lines if "==ERROR==" in one or "heddle" in one.lower() or "Error" in one] or lines
        fail(f"{os.path.basename(command[0])} failed: {' '.join(told[:3]) or 'it printed nothing'}")
    return ran.stdout


def read_details(text):
    """Of each launch: the kernel's name and its metrics."""
    launches = collections.OrderedDict()
    start = text.find('"ID"')
    for row in csv.DictReader(io.StringIO(text[start:] if start >= 0 else "")):
        launch = launches.setdefault(row["ID"], {"kernel": row["Kernel Name"].split("(")[0].strip(), "metrics": {}})
        launch["capability"] = row.get("CC") or ""
        # The first of a name: sections repeat some of them in other units.
        name = METRICS.get(row["Metric Name"])
        value = number(row["Metric Value"])
        if name == "dram_bytes_s" and "byte" not in row["Metric Unit"]:
            continue
        if name:
            launch["metrics"].setdefault(name, value)
    return list(launches.values())


def read_sources(text):
    """Of each launch: its instructions, a dictionary each by the profiler's columns."""
    launches, lines = [], text.splitlines()
    for line in lines:
        if line.startswith('"Kernel Name"'):
            launches.append([])
        elif line.startswith('"Address"'):
            launches[-1].append(line)
        elif launches and launches[-1] and line.startswith('"'):
            launches[-1].append(line)
    return [list(csv.DictReader(one)) for one in launches]


def opcode(instruction):
    words = instruction.split()
    return next((word.rstrip(";") for word in words if not word.startswith("@")), "")


def lines_of(instructions, explained):
    """What the instructions of each source line add up to; None where the machine code is not what Heddle explains."""
    rows = explained["rows"]["sass"]
    # What pads the end may be left out.
    padding = {opcode(row["text"]) for row in rows[len(instructions):]}
    differ = any(opcode(row["text"]) != opcode(one["Source"]) for row, one in zip(rows, instructions))
    if not instructions or len(rows) < len(instructions) or padding - {"NOP", "BRA"} or differ:
        return None
    lines = collections.defaultdict(lambda: {"samples": 0, "stalls": collections.Counter(),
                                             **{name: 0 for name in ADDED.values()}})
    for row, one in zip(rows, instructions):
        if row["line"] < 0:
            continue
        line = lines[row["line"]]
        line["samples"] += int(number(one.get("# Samples", "0")))
        for column, name in ADDED.items():
            line[name] += int(number(one.get(column, "0")))
        for column, what in STALLS.items():
            line["stalls"][what] += int(number(one.get(column) or "0"))
    found = []
    for index, line in sorted(lines.items(), key=lambda item: -item[1]["samples"]):
        place = explained["lines"][index]
        found.append({"file": place["file"], "line": place["line"], "source": place["source"].strip(), **line,
                      "stalls": {what: n for what, n in line["stalls"].most_common() if n}})
    return found


def stalls_of(instructions):
    """What the warps of a launch wait for, in samples."""
    stalls = collections.Counter()
    for one in instructions:
        for column, what in STALLS.items():
            stalls[what] += int(number(one.get(column) or "0"))
    stalls.pop("nothing", None)
    return {what: n for what, n in stalls.most_common() if n}


def bound(launch):
    """What bounds a kernel, and how far it is from that."""
    metrics = launch["metrics"]
    found = [(metrics.get(key, 0.0), name) for key, name in UNITS.items()]
    # Device memory first: what it moves keeps the caches busy too.
    unit, name = next((one for one in found if one[0] >= BUSY), max(found))
    stalls = launch["stalls"]
    most = next(iter(stalls), "")
    waits = f"; warps wait most for {most}, {100 * stalls[most] // sum(stalls.values())} % of what they wait" if most else ""
    if unit >= BUSY:
        return f"bound by {name}: {unit:.0f} % of its peak, so at most {100 / unit:.2f} times as fast by it"
    waves = metrics.get("waves", 0)
    few = f"; {waves:.2f} waves of blocks, too few to fill the GPU" if 0 < waves < 1 else ""
    return f"bound by latency: the busiest unit, {name}, reaches {unit:.0f} % of its peak{waits}{few}"


def report(launch):
    metrics = launch["metrics"]
    print(f"{launch['kernel']}: {metrics.get('duration_ns', 0) / 1e3:.2f} us, {metrics.get('grid', 0):.0f} blocks of "
          f"{metrics.get('block', 0):.0f} threads, {metrics.get('registers', 0):.0f} registers, occupancy "
          f"{metrics.get('occupancy_percent', 0):.0f} % of {metrics.get('occupancy_limit_percent', 0):.0f} %")
    print(f"  device memory {metrics.get('dram_percent', 0):.0f} %, L2 {metrics.get('l2_percent', 0):.0f} %, L1 and shared memory "
          f"{metrics.get('l1_percent', 0):.0f} %, issue {metrics.get('issue_percent', 0):.0f} %")
    print(f"  {launch['bound']}")
    if launch["lines"] is None:
        print("  no lines: the machine code that ran is not what 'heddle explain' shows of this shape")
        return
    samples = max(1, sum(line["samples"] for line in launch["lines"]))
    for line in [one for one in launch["lines"] if one["samples"]][:12]:
        most = next(iter(name for name in line["stalls"] if name != "nothing"), "")
        extra = "".join(f", {line[name]} {what}" for name, what in
                        (("excessive_sectors", "sectors too many"), ("bank_conflicts", "wavefronts of bank conflicts")) if line[name])
        print(f"  {100 * line['samples'] / samples:5.1f} %  {os.path.basename(line['file'])}:{line['line']}  {line['source'][:60]}"
              f"  ({most}{extra})")


def main():
    request = read_request()
    case = request["case"]
    with tempfile.TemporaryDirectory() as folder:
        recorded = os.path.join(folder, "report")
        here = os.path.dirname(os.path.abspath(__file__))
        run(request["ncu"], "-f", "-o", recorded, "--set", "full", "--clock-control", "none", sys.executable, "-B",
            os.path.join(here, "launch.py"), request["library"], request["device"], json.dumps(case))
        read = [request["ncu"], "--import", recorded + ".ncu-rep", "--csv", "--print-units", "base", "--page"]
        launches = read_details(run(*read, "details"))
        sources = read_sources(run(*read, "source", "--print-source", "sass"))
    if not launches:
        fail("the profiler saw no kernel")
    settings = [word for name, value in case["settings"].items() for word in ("--set", f"{name}={value}")]
    sizes = [word for name, n in case["sizes"].items() for word in ("--size", f"{name}={n}")]
    digits = launches[0]["capability"].replace(".", "")
    target = ["--arch", f"sm_{digits}{'a' if int(digits) >= 90 else ''}"] if digits.isdigit() else []
    text = run(request["heddle"], "explain", case["kernel"], *settings, *sizes, *target, "--json")
    explained = json.loads(text)
    explained = explained if isinstance(explained, list) else [explained]
    for launch, instructions in zip(launches, sources + [[]] * len(launches)):
        fitting = [lines_of(instructions, one) for one in explained if one["kernel"].split(".")[0] == launch["kernel"]]
        launch["lines"] = next((lines for lines in fitting if lines is not None), None)
        launch["stalls"] = stalls_of(instructions)
        launch["bound"] = bound(launch)
        report(launch)
    result = {"command": request["command"], "date": datetime.date.today().isoformat(), "kernel": case["kernel"],
              "settings": case["settings"], "shape": case["shape"], "launches": launches}
    if request["json"]:
        write(request["json"], json.dumps(result, indent=1) + "\n")
    if request["html"]:
        write(request["html"], page(result))


main()
