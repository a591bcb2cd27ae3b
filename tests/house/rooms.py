#!/usr/bin/env python3
"""Draws which room includes which, from the #include lines, as a Mermaid flowchart.

    python3 tests/house/rooms.py ROOT             prints the picture
    python3 tests/house/rooms.py ROOT --check     fails where ARCHITECTURE.md shows another one
    python3 tests/house/rooms.py ROOT --fix       puts it there

A room is a folder of sources; the picture leaves out tools and tests, which may include everything.
"""
import pathlib
import re
import sys

FOLDERS = ["kernels", "runtime", "dsl", "codegen", "ir"]
BEGIN = "<!-- rooms: tests/house/rooms.py -->"
END = "<!-- /rooms -->"


def room_of(path):
    """dsl/layout/layout.h -> dsl/layout; runtime/device.h -> runtime."""
    return "/".join(path.split("/")[:-1])


def edges(root):
    """{(room, room)} by the includes between files of different rooms."""
    found = set()
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in (".h", ".cc"):
                continue
            here = room_of(file.relative_to(root).as_posix())
            for target in re.findall(r'#include "heddle/([^"]+)"', file.read_text()):
                there = room_of(target)
                if there and there != here and there.split("/")[0] in FOLDERS:
                    found.add((here, there))
    return found


def reaches(start, goal, graph):
    """Whether a path of at least two edges leads from start to goal."""
    open_, seen = [room for room in graph.get(start, ()) if room != goal], set()
    while open_:
        room = open_.pop()
        if goal in graph.get(room, ()):
            return True
        if room not in seen:
            seen.add(room)
            open_ += graph.get(room, ())
    return False


def picture(root):
    """Between folders, one arrow for what is included directly; within a folder, its rooms."""
    between, rooms = set(), {folder: set() for folder in FOLDERS}
    for here, there in edges(root):
        a, b = here.split("/")[0], there.split("/")[0]
        rooms[a].add(here)
        rooms[b].add(there)
        if a != b:
            between.add((a, b))
    graph = {}
    for a, b in between:
        graph.setdefault(a, set()).add(b)
    lines = ["```mermaid", "flowchart TD"]
    for folder in FOLDERS:
        inner = sorted(room.split("/", 1)[1] for room in rooms[folder] if "/" in room)
        text = f"<b>{folder}</b>" + ("<br>" + "<br>".join(inner) if inner else "")
        lines.append(f'  {folder}["{text}"]')
    for a, b in sorted(between, key=lambda e: (FOLDERS.index(e[0]), FOLDERS.index(e[1]))):
        if not reaches(a, b, graph):
            lines.append(f"  {a} --> {b}")
    return "\n".join(lines + ["```"])


def main():
    root = pathlib.Path(sys.argv[1])
    if len(sys.argv) < 3:
        print(picture(root))
        return 0
    page = root / "ARCHITECTURE.md"
    before, rest = page.read_text().split(BEGIN)
    _, after = rest.split(END)
    new = f"{before}{BEGIN}\n{picture(root)}\n{END}{after}"
    if sys.argv[2] == "--fix":
        page.write_text(new)
        return 0
    if page.read_text() == new:
        return 0
    print("ARCHITECTURE.md draws rooms that are no longer so: python3 tests/house/rooms.py . --fix")
    return 1


if __name__ == "__main__":
    sys.exit(main())
