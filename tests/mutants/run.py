#!/usr/bin/env python3
"""Plants bugs, one at a time, and says which test finds each.

    python3 tests/mutants/run.py BUILD [--only NAME...] [--programs NAME...] [--record FILE] [--commit ID]
    python3 tests/mutants/run.py --check        whether every bug can still be planted

BUILD is a build folder of this source tree, configured for Ninja, in which the test programs are
built. The tree stays as it is: the changed file is compiled beside it and linked in front of the
libraries. Test files and libraries that are not built are left out.

mutants.json has a row a bug: the file, the text that stands there once, what stands there instead,
and the programs (of tests/<folder>; fuzz is the fuzzer of passes) that should notice. A header has
`sources`, files that are compiled with the changed header: test files, whose tests should notice, or,
where `programs` stand beside them, files of the library. In the place of `programs` a source file may
have `sources`, too: test files, whose tests alone are run. A bug is caught where a program fails, and
survives where all pass. The exit code is 1 where one survives or cannot be planted.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 300  # that a program may run
# What fuzz_passes is given: seeds that nothing else uses.
FUZZ = ["--seed", "5000000", "--count", "1000", "--seconds", "120", "--max-failures", "1", "--no-reduce"]


class Planting(Exception):
    """Why a bug cannot be planted."""


def call(command, build):
    done = subprocess.run(command, cwd=build, capture_output=True, text=True)
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "error" in line]
        raise Planting(lines[0] if lines else "the compiler fails")
    return done.stdout


def planted(mutant):
    """The file's text with the bug in it."""
    right = (ROOT / mutant["file"]).read_text()
    if right.count(mutant["old"]) != 1:
        raise Planting(f"the text stands there {right.count(mutant['old'])} times")
    return right.replace(mutant["old"], mutant["new"])


def check(mutants):
    """Says which rows no longer fit the source tree."""
    faults = []
    for mutant in mutants:
        try:
            planted(mutant)
            absent = [name for name in mutant.get("sources", []) if not (ROOT / name).exists()]
            if absent:
                raise Planting(f"there is no {absent[0]}")
            if mutant["file"].endswith(".h") and "sources" not in mutant:
                raise Planting("a header needs `sources`")
        except (OSError, Planting) as why:
            faults.append(f"{mutant['name']}: {mutant['file']}: {why}")
    names = [mutant["name"] for mutant in mutants]
    faults += [f"{name}: twice" for name in sorted(set(names)) if names.count(name) > 1]
    print("\n".join(faults + [f"{len(mutants)} bugs to plant, {len(faults)} faults"]))
    return 1 if faults else 0


def compile_as(path, source, made, build, *flags):
    """Compiles a text as the build compiles the file at `path`."""
    entries = json.loads((build / "compile_commands.json").read_text())
    command = next(shlex.split(entry["command"]) for entry in entries if pathlib.Path(entry["file"]) == path)
    command[command.index("-o") + 1] = str(made)
    # A precompiled header holds the unchanged headers.
    at = next((i for i, word in enumerate(command) if word.endswith("cmake_pch.hxx")), None)
    if at is not None:
        del command[at - 1 : at + 1]
    command[command.index("-c") + 1] = str(source)
    call(command[:1] + list(flags) + command[1:] + ["-w"], build)
    return made


def compile_mutant(mutant, build, scratch):
    """The object file of the file with the bug in it."""
    path = ROOT / mutant["file"]
    source = scratch / path.name
    source.write_text(planted(mutant))
    return compile_as(path, source, scratch / "mutant.o", build)


def compile_users(mutant, build, scratch):
    """The object files of a header's `sources`, compiled with the bug in the header."""
    header = scratch / "include" / "heddle" / mutant["file"]
    header.parent.mkdir(parents=True)
    header.write_text(planted(mutant))
    made = []
    for name in mutant["sources"]:
        path = ROOT / name
        made.append(compile_as(path, path, scratch / (path.name + ".o"), build, f"-I{scratch / 'include'}"))
    return made


def link(name, made, build):
    """A program, with these objects in place of its own and the library's."""
    target = "fuzz_passes" if name == "fuzz" else f"test_{name}"
    command = call(["ninja", "-t", "commands", target], build).strip().splitlines()[-1]
    words = shlex.split(command.split("&&")[1])
    at = words.index("-o")
    # Beside the program itself, where some tests look for files.
    linked = (build / words[at + 1]).with_suffix(f".mutant{os.getpid()}")
    words[at + 1] = str(linked)
    replaced = {path.name for path in made}
    present = [word for word in words if not re.search(r"\.(o|a)$", word)
               or ((build / word).exists() and pathlib.Path(word).name not in replaced)]
    # In front: the first definition is taken, of inline functions and of libraries that are linked whole.
    whole = ["-Wl,--allow-multiple-definition"]
    call(present[:1] + [str(path) for path in made] + present[1:] + whole, build)
    return linked


def suites(sources):
    """The argument that runs the tests of these files alone."""
    text = "".join((ROOT / name).read_text() for name in sources)
    names = re.findall(r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+),", text, re.M)
    return "--gtest_filter=" + ":".join(sorted({f"*{name}*.*" for name in names}))


def failure(name, made, build, *arguments):
    """The first failure of a program with these objects in it; None where it passes."""
    command = [link(name, made, build), *(FUZZ if name == "fuzz" else ["--gtest_brief=1"]), *arguments]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"{name}: does not end"
    finally:
        pathlib.Path(command[0]).unlink()
    return None if ran.returncode == 0 else first_failure(name, ran.stdout)


def first_failure(name, output):
    """What a program says of the first thing that went wrong."""
    found = re.search(r"^\[  FAILED  \] ([\w./]+)", output, re.M) or re.search(r"^(seed \d+)", output, re.M)
    return f"{name}: {found.group(1) if found else 'ends badly'}"


def find(mutant, build, scratch):
    """The first failure of a program with the bug in it; None where all pass."""
    compiled = compile_users if not mutant["file"].endswith(".cc") else lambda *given: [compile_mutant(*given)]
    made = compiled(mutant, build, scratch)
    if "programs" not in mutant:
        folder = pathlib.Path(mutant["sources"][0]).parts[1]
        return failure(folder, made, build, suites(mutant["sources"]))
    for name in mutant["programs"]:
        found = failure(name, made, build)
        if found:
            return found
    return None


def run(mutant, build):
    """'caught by …', 'survived', or why it could not be planted."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = find(mutant, build, pathlib.Path(folder))
        except Planting as why:
            return f"cannot be planted: {why}"
    return f"caught by {found}" if found else "survived"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path, nargs="?")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--programs", nargs="*", default=[], help="run these alone, and the bugs that they should notice")
    parser.add_argument("--list", type=pathlib.Path, default=ROOT / "tests/mutants/mutants.json")
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    mutants = json.loads(options.list.read_text())
    if options.check:
        return check(mutants)
    if not options.build:
        parser.error("say which build, or --check")
    mutants = [m for m in mutants if not options.only or m["name"] in options.only]
    if options.programs:
        for mutant in mutants:
            mutant["programs"] = [name for name in mutant.get("programs", []) if name in options.programs]
        mutants = [mutant for mutant in mutants if mutant["programs"]]
    # What fails without a bug would catch every one.
    for name in sorted({name for mutant in mutants for name in mutant.get("programs", [])}):
        found = failure(name, [], options.build.resolve())
        if found:
            sys.exit(f"without any bug, {found}")
    rows = []
    for mutant in mutants:
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
