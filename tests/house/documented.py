#!/usr/bin/env python3
"""Checks that the reference of the C++ interface says something of everything that it lists.

    python3 tests/house/documented.py ROOT [--doxygen PROGRAM]

Wanted is a comment for every class, function, variable, type and enumeration of the public headers
(tools/doc/Doxyfile names them), and for every header. What needs none: see `obvious`. A comment above a
declaration also counts for those below it up to a blank line or the next comment (tools/doc/filter.py).
"""
import argparse
import pathlib
import re
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True  # the source tree stays as it is
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "doc"))
import reference  # noqa: E402: found by the line above

# Operators that mean what they mean of numbers.
OPERATORS = re.compile(r"operator ?([-+*/%&|^!~<>=]{1,3}|\(type\))$")


def has_text(node):
    return any("".join(part.itertext()).strip()
               for name in ("briefdescription", "detaileddescription") for part in node.findall(name))


def obvious(member, compound, source):
    """Whether a member needs no comment: its name, or what it is, says everything."""
    name = member.findtext("name")
    own = compound.findtext("compoundname").split("<")[0].split("::")[-1]
    parameters = member.findtext("argsstring") or ""
    if member.get("kind") == "enumvalue":
        return True  # the enumeration's comment speaks of its values
    if name == "~" + own or parameters.endswith(("=delete", "=default")):
        return True
    if name == own and re.match(r"\((const %s ?&|%s ?&&)" % (own, own), parameters):
        return True  # a copy, a move
    if OPERATORS.match(name) or name in ("value_type", "element_type", "whole_type", "Base"):
        return True
    # size() { return size_; }
    return re.search(r"\b%s\(\) const (noexcept )?\{ return \*?%s_; \}" % (name, name), source) is not None


def missing(root, folder):
    """FILE:LINE: KIND NAME of everything that has no comment and should have one."""
    found = set()
    for file in sorted((folder / "xml").glob("*.xml")):
        for compound in ElementTree.parse(file).getroot().findall("compounddef"):
            kind = compound.get("kind")
            if kind in ("class", "struct", "union", "file", "concept"):
                name = compound.findtext("compoundname")
                if not has_text(compound) and not name.endswith(".md"):
                    found.add((place(root, compound), kind, name))
            if kind not in ("class", "struct", "union", "namespace"):
                continue
            for member in compound.iter("memberdef"):
                if not member.get("id").startswith(compound.get("id")):
                    continue  # inherited: it is looked at where it is declared
                at = place(root, member)
                source = (root / at[0]).read_text().splitlines()[at[1] - 1]
                if not has_text(member) and not obvious(member, compound, source):
                    qualified = f'{compound.findtext("compoundname")}::{member.findtext("name")}'
                    found.add((at, member.get("kind"), qualified))
    return [f"{at[0]}:{at[1]}: {kind} {name}" for at, kind, name in sorted(found)]


def place(root, node):
    """(file, line) in the repository."""
    location = node.find("location")
    text = reference.source_line(root, f'{location.get("file")}:{location.get("line") or 1}')
    file, line = text.rsplit(":", 1)
    return file, int(line)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("root", type=pathlib.Path)
    arguments.add_argument("--doxygen", default="doxygen")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        warnings = reference.run(given.root, "", given.doxygen, "xml", folder)
        without = missing(given.root, folder)
    if warnings:
        print("Doxygen warns of the reference:", *warnings, sep="\n  ")
    if without:
        print("these have no comment, `// …` above them, and so no entry in the reference:", *without, sep="\n  ")
    return bool(warnings or without)


if __name__ == "__main__":
    sys.exit(main())
