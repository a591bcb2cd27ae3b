#!/usr/bin/env python3
"""Runs a fuzzer on many seeds, some at a time on every core, and adds up what the parts report.

    python3 tests/fuzz/in_parts.py [--jobs N] [--part PROGRAMS] --record FILE [--commit ID] [--seed S] --count N PROGRAM [ARGUMENT...]

PROGRAM is fuzz_passes or fuzz_device; each part is a process of it with --json. What a failing part prints is shown, and
ends the run with exit code 1 once the other parts have ended; their sum is written all the same.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import time


def added(a, b):
    """The sum of two reports: numbers add up, and of lists (of what was never seen) stays what both have."""
    if isinstance(a, dict):
        return {key: added(a[key], b[key]) if key in a and key in b else a.get(key, b.get(key)) for key in {**a, **b}}
    if isinstance(a, list):
        return [item for item in a if item in b]
    return a if isinstance(a, str) else a + b


def run_part(program, arguments, seed, count):
    """What the part reports, None where it crashed, and what it printed if anything is wrong."""
    done = subprocess.run([program, *arguments, "--seed", str(seed), "--count", str(count), "--json"],
                          capture_output=True, text=True)
    at = done.stdout.rfind("\n{\n") + 1 if not done.stdout.startswith("{") else 0
    try:
        report = json.loads(done.stdout[at:])
    except json.JSONDecodeError:
        return None, done.stdout + done.stderr
    return report, (done.stdout[:at] + done.stderr or f"exit code {done.returncode}") if done.returncode else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--part", type=int, default=500, help="programs a process")
    parser.add_argument("--record", required=True, help="where the sum goes, as JSON")
    parser.add_argument("--commit", default="", help="what the record says of the source's version")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    arguments = options.arguments
    began = time.time()
    total, wrong, parts = None, 0, range(0, options.count, options.part)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = [pool.submit(run_part, options.program, arguments, options.seed + at, min(options.part, options.count - at))
                   for at in parts]
        for done, part in enumerate(concurrent.futures.as_completed(running), 1):
            report, printed = part.result()
            if report is None or printed:
                wrong += 1
                print(printed, flush=True)
            if report is not None:
                total = report if total is None else added(total, report)
            print(f"\r{done} of {len(parts)} parts, {wrong} with faults, {time.time() - began:.0f} s", end="", file=sys.stderr)
    print(file=sys.stderr)
    if total is None:
        return 1
    name = os.path.basename(options.program)
    total["command"] = " ".join([name, *arguments, "--seed", str(options.seed), "--count", str(options.count)])
    total.update(first_seed=options.seed, commit=options.commit, processor_seconds=round(total["seconds"]),
                 seconds=round(time.time() - began), processes=options.jobs)
    if "ops_of_the_table_used" in total:
        total["ops_of_the_table_used"] = len(total["ops_by_type"])
    with open(options.record, "w") as file:
        json.dump(total, file, indent=2)
        file.write("\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
