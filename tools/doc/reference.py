#!/usr/bin/env python3
"""Makes the reference of the C++ interface with Doxygen.

    python3 tools/doc/reference.py ROOT FOLDER [--version VERSION] [--doxygen PROGRAM]

writes FOLDER/html. It fails where Doxygen warns, with its warnings.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the source tree stays as it is
import filter as header_filter  # noqa: E402


def run(root, version, doxygen, wanted, folder):
    """Writes `wanted`, html or xml, to folder/wanted. Returns Doxygen's warnings, as ROOT/FILE:LINE: text."""
    with tempfile.TemporaryDirectory() as work:
        os.symlink(root.resolve(), os.path.join(work, "heddle"))
        environment = dict(os.environ, HEDDLE_VERSION=version, HEDDLE_PYTHON=sys.executable)
        for kind in ("html", "xml"):
            environment["HEDDLE_" + kind.upper()] = "YES" if kind == wanted else "NO"
        done = subprocess.run([doxygen, "heddle/tools/doc/Doxyfile"], cwd=work, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        warnings = done.stdout.replace(os.path.realpath(work) + "/", "").splitlines()
        shutil.rmtree(folder / wanted, ignore_errors=True)
        if done.returncode == 0:
            shutil.copytree(os.path.join(work, wanted), folder / wanted)
        else:
            warnings.append(f"{doxygen} failed with exit code {done.returncode}")
    return [source_line(root, warning) for warning in warnings]


def source_line(root, text):
    """The text with `heddle/FILE:LINE`, where LINE is one of the filter's, as FILE:LINE of the header."""
    match = re.match(r"heddle/(\S+\.h):(\d+)(.*)", text)
    if not match:
        return text
    lines = header_filter.present(root / match.group(1))
    line = lines[min(int(match.group(2)), len(lines)) - 1][1]
    return f"{match.group(1)}:{line}{match.group(3)}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("root", type=pathlib.Path)
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--version", default="")
    arguments.add_argument("--doxygen", default="doxygen")
    given = arguments.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    warnings = run(given.root, given.version, given.doxygen, "html", given.folder)
    print("\n".join(warnings + [f"{given.folder}/html/index.html"]))
    return bool(warnings)


if __name__ == "__main__":
    sys.exit(main())
