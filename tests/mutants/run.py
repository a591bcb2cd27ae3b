#!/usr/bin/env python3
"""Plants bugs, one at a time, and says which test finds each.

    python3 tests/mutants/run.py BUILD [--only NAME...] [--record FILE] [--commit ID]

BUILD is a configured build folder of the source tree that this file lies in; the tree is changed and
put back, so use a copy. mutants.json has a row a bug: the file, the text that stands there once, what
stands there instead, and the programs (tests/<folder>, or fuzz for the fuzzer) that should notice. A
bug is caught where one of them fails, and survives where all pass. The exit code is 1 where one
survives or cannot be planted.
"""
import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FUZZ = ["--seed", "5000000", "--count", "3000", "--seconds", "50", "--max-failures", "1"]


def program(build, name):
    """Target, and the command that runs it."""
    if name == "fuzz":
        return "fuzz_passes", [build / "tests/fuzz/fuzz_passes", *FUZZ]
    return f"test_{name}", [build / f"tests/test_{name}", "--gtest_brief=1"]


def first_failure(name, output):
    """What a program says of the first thing that went wrong."""
    found = re.search(r"^\[  FAILED  \] ([\w./]+)", output, re.M) or re.search(r"^(seed \d+)", output, re.M)
    return f"{name}: {found.group(1) if found else 'ends badly'}"


def run(mutant, build):
    """'caught by …', 'survived', or why it could not be planted."""
    path = ROOT / mutant["file"]
    right = path.read_text()
    if right.count(mutant["old"]) != 1:
        return f"cannot be planted: the text stands there {right.count(mutant['old'])} times"
    path.write_text(right.replace(mutant["old"], mutant["new"]))
    try:
        for name in mutant["programs"]:
            target, command = program(build, name)
            built = subprocess.run(["cmake", "--build", build, "--target", target], capture_output=True, text=True)
            if built.returncode != 0:
                errors = [line for line in built.stdout.splitlines() if "error" in line]
                return f"cannot be planted: it does not compile: {errors[0] if errors else ''}"
            try:
                ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
            except subprocess.TimeoutExpired:
                return f"caught by {name}: does not end"
            if ran.returncode != 0:
                return f"caught by {first_failure(name, ran.stdout)}"
        return "survived"
    finally:
        path.write_text(right)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    mutants = json.loads((ROOT / "tests/mutants/mutants.json").read_text())
    rows = []
    for mutant in mutants:
        if options.only and mutant["name"] not in options.only:
            continue
        began = time.monotonic()
        result = run(mutant, options.build.resolve())
        rows.append({"name": mutant["name"], "file": mutant["file"], "result": result})
        print(f"{mutant['name']}: {result} ({time.monotonic() - began:.0f} s)", flush=True)
    if options.record:
        record = {
            "command": "python3 tests/mutants/run.py BUILD",
            "date": datetime.date.today().isoformat(),
            "commit": options.commit,
            "caught": sum(row["result"].startswith("caught") for row in rows),
            "planted": len(rows),
            "mutants": rows,
        }
        options.record.write_text(json.dumps(record, indent=2) + "\n")
    return 0 if all(row["result"].startswith("caught") for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
