"""Runs compute-sanitizer's tools over GPU tests, and says what they find.

    sanitizers.py TESTS OUT [--only NAME...] [--tools NAME...] [--device NAME] [--limit SECONDS] [--jobs N]
        TESTS: folder with test_kernels and test_dsl; OUT: folder for sanitizers.json

Every suite below runs under every tool, in shards beside each other. What CONTRIBUTING.md explains is counted apart from faults:
initcheck does not see what the copy engine writes, and racecheck no sync_warp() in front of an arrival. Where a tool ends the program
in a test, a new one goes on with the test behind it. Fails where there are faults, and where a test did not run.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from gpu_machine import machine

TOOLS = {"memcheck": [], "racecheck": [], "synccheck": ["--num-cuda-barriers", "65536"],
         "initcheck": ["--print-limit", "1000000", "--show-backtrace", "no"]}
# The first line of a finding.
FINDING = r"^========= (Invalid|Misaligned|Out-of-range|Program hit|Error:|Warning:|Barrier error|Divergent|Uninitialized __|Host API memory access error)"
# The first line of a test.
BEGUN = r"^\[ RUN      \] (\S+)"
# What is said of no other clusters than those of 16, by synccheck: that nobody waits at the mbarriers of blocks from rank 8 on, and
# that a program ended, in which such a kernel has met an illegal address that memcheck does not see.
FAR_BARRIER = r"Barrier is located at shared address 0x[89a-f][0-9a-f]{6}$"
ENDED, LARGE_CLUSTER = "process didn't terminate successfully", "cluster 16x1x1"
# Tests that a tool reports something of that is no fault; CONTRIBUTING.md says why.
EXPLAINED = {
    "racecheck": ["AsyncPipeline.CopiesInWarpsOfTheirOwn", "Gemm.IsOneBodyForTheCopyEngineAndForThreads",
                  "BulkCopy.GoesFromBlockToBlock", "BulkCopy.ReachesSeveralBlocksAtOnce", "BulkAtom.ReachesSeveralBlocks"],
    "initcheck": ["GemmOperation.OfEveryTypeAndLayout", "GemmOperation.OfLongSums", "Gemm.TakesARowMajorMatrixAsTheTransposedOne",
                  "GemmOperation.OfEveryEpilogue", "GemmOperation.OfFactors"],
}
# What runs under them: a program of tests and which of its tests.
SUITES = {
    "matrix products": ("test_kernels", "*Gemm*-*Mutation*:GemmRe*"),
    "kernels of rows": ("test_kernels", "*Softmax*:*Norm*:*CrossEntropy*:*Reduce*"),
    "maps, scans, searches": ("test_kernels", "*Map*:Copies*:Casts*:*Scan*:*Sort*:*TopK*:*Histogram*:*Embedding*:*Dropout*:*Rotar*:L2*"),
    "other kernels": ("test_kernels", "*Axpby*:*RowSum*:*Learn*:*LayoutKernels*-AxpbyOfMany*:*MoreThan2To31*:*FurtherApart*"),
    "copies, products, pipelines, collectives": ("test_dsl", "*Tma*:*Bulk*:*Im2col*:*Wgmma*:Gemm.*:*Pipeline*:*Mma*:CollectiveResults*"),
}


def sanitizer():
    found = shutil.which("compute-sanitizer") or next(iter(sorted(glob.glob("/usr/local/cuda*/bin/compute-sanitizer"))[-1:]), None)
    if not found:
        raise SystemExit("sanitizers.py: there is no compute-sanitizer in PATH or below /usr/local")
    return found


def names(tests, suite):
    """The tests of a suite."""
    program, chosen = SUITES[suite]
    command = [os.path.join(tests, program), f"--gtest_filter={chosen}", "--gtest_list_tests"]
    found, group = [], ""
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        name = line.split("#")[0].rstrip()
        if not line.startswith(" "):
            group = name
        elif "DISABLED_" not in name:
            found.append(group + name.strip())
    return found


def run(tests, device, tool, suite, wanted, limit):
    """The text of the tests that are wanted, and whether they ended in time."""
    text, deadline = "", time.monotonic() + limit
    while wanted:
        command = [sanitizer(), "--tool", tool, *TOOLS[tool], os.path.join(tests, SUITES[suite][0]), f"--device={device}",
                   f"--gtest_filter={':'.join(wanted)}"]
        # A session of their own: the tool leaves the program that it runs behind, which would hold the pipe.
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True) as process:
            try:
                part = process.communicate(timeout=max(1, deadline - time.monotonic()))[0]
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return text + process.communicate()[0], False
        text += part
        begun = set(re.findall(BEGUN, part, re.MULTILINE))
        if not begun:
            break
        wanted = [name for name in wanted if name not in begun]
    return text, True


def count(pattern, text):
    return len(re.findall(pattern, text, re.MULTILINE))


def findings(text, tool):
    """How many there are, by test: faults, and what is none."""
    faults, explained, test = {}, {}, "before the tests"
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("[ RUN"):
            test = line.split("] ")[1]
        elif re.search(FINDING, line):
            large = tool == "synccheck" and (any(re.search(FAR_BARRIER, detail) for detail in lines[i + 1:i + 5])
                                             or (ENDED in line and any(LARGE_CLUSTER in before for before in lines[max(0, i - 12):i])))
            no_fault = large or test in EXPLAINED.get(tool, [])
            found = explained if no_fault else faults
            found[test] = found.get(test, 0) + 1
    return faults, explained


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests")
    parser.add_argument("out")
    parser.add_argument("--only", nargs="*", default=list(SUITES), choices=list(SUITES), help="these suites alone")
    parser.add_argument("--tools", nargs="*", default=list(TOOLS), choices=list(TOOLS), help="these tools alone")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--limit", type=int, default=400, help="seconds of a shard")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="shards that run beside each other")
    parser.add_argument("--shards", type=int, default=4, help="of a suite under a tool")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    path = os.path.join(options.out, "sanitizers.json")
    kept = []
    if os.path.exists(path):
        with open(path) as file:
            kept = [row for row in json.load(file)["figures"] if row["suite"] not in options.only or row["tool"] not in options.tools]
    figures = kept
    here = machine("python3 tools/bench/sanitizers.py TESTS OUT")
    for suite in options.only:
        wanted = names(options.tests, suite)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            jobs = [(tool, shard) for tool in options.tools for shard in range(options.shards)]
            texts = dict(zip(jobs, pool.map(
                lambda job: run(options.tests, options.device, job[0], suite, wanted[job[1]::options.shards], options.limit), jobs)))
        for tool in options.tools:
            parts = [texts[tool, shard] for shard in range(options.shards)]
            whole = "\n".join(text for text, _ in parts)
            faults, explained = findings(whole, tool)
            begun = set(re.findall(BEGUN, whole, re.MULTILINE))
            results = {result: count(rf"^\[ {result} \] .*ms\)", whole) for result in ("      OK", " SKIPPED", " FAILED ")}
            figures.append({"suite": suite, "tool": tool, "tests": results["      OK"], "failed": results[" FAILED "],
                            "stopped": len(begun) - sum(results.values()),
                            "ended": all(ended for _, ended in parts) and begun.issuperset(wanted),
                            "faults": faults, "explained": explained, "gpu": here["gpu"], "date": here["date"]})
            print(figures[-1], flush=True)
            with open(os.path.join(options.out, f"{tool} {suite}.log"), "w") as file:
                file.write(whole)
        # At once, as a machine may be taken back before the end.
        with open(path, "w") as file:
            json.dump({**here, "benchmark": "sanitizers", "figures": figures}, file, indent=1)
            file.write("\n")
    sys.exit(any(row["faults"] or row["failed"] or not row["ended"] for row in figures))


if __name__ == "__main__":
    main()
