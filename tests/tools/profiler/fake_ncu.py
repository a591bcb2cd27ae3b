#!/usr/bin/env python3
"""Stands for Nsight Compute in tests: it starts nothing, and answers as if the case's kernel had run once, with the machine
code that HEDDLE_UNDER_TEST explains and sample i % 5 of its instruction i. FAKE_NCU: "fail", "none" or "other code"."""
import json
import os
import subprocess
import sys

DETAILS = [("GPU Speed Of Light Throughput", "DRAM Throughput", "%", "91.50"), ("", "Memory Throughput", "%", "91.50"),
           ("", "Duration", "ns", "21,312"), ("", "L1/TEX Cache Throughput", "%", "33.82"), ("", "L2 Cache Throughput", "%", "80.37"),
           ("Compute Workload Analysis", "Issue Slots Busy", "%", "48.47"), ("Memory Workload Analysis", "Memory Throughput", "byte/s", "2,225,813,813.81"),
           ("Launch Statistics", "Block Size", "", "64"), ("", "Grid Size", "", "8,192"), ("", "Registers Per Thread", "register/thread", "40"),
           ("", "Waves Per SM", "", "2.59"), ("Occupancy", "Theoretical Occupancy", "%", "75"), ("", "Achieved Occupancy", "%", "58.38")]
mode = os.environ.get("FAKE_NCU", "")
arguments = sys.argv[1:]
if "-o" in arguments:
    if mode == "fail":
        print("==ERROR== ERR_NVGPUCTRPERM - the user may not read performance counters")
        sys.exit(1)
    with open(arguments[arguments.index("-o") + 1] + ".ncu-rep", "w") as file:
        file.write(arguments[-1])
    sys.exit(0)
with open(arguments[arguments.index("--import") + 1]) as file:
    case = json.load(file)
if mode == "none":
    print("==WARNING== No kernels were profiled.")
    sys.exit(0)
if arguments[arguments.index("--page") + 1] == "details":
    print('"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"')
    for section, name, unit, value in DETAILS:
        print(f'"0","{case["kernel"]}","{section}","{name}","{unit}","{value}"')
    sys.exit(0)
options = [word for name, value in case["settings"].items() for word in ("--set", f"{name}={value}")]
options += [word for name, n in case["sizes"].items() for word in ("--size", f"{name}={n}")]
explained = json.loads(subprocess.run([os.environ["HEDDLE_UNDER_TEST"], "explain", case["kernel"], *options, "--json"],
                                      check=True, capture_output=True, text=True).stdout)
print(f'"Kernel Name","{case["kernel"]}",')
print('"Address","Source","# Samples","Instructions Executed","L2 Theoretical Sectors Global Excessive","stall_long_sb","stall_wait"')
for i, row in enumerate(explained["rows"]["sass"]):
    text = "NOP" if mode == "other code" and i == 3 else row["text"].replace('"', '""')
    print(f'"0x{16 * i:x}","      {text}","{i % 5}","10","1","{i % 5}","0"')
