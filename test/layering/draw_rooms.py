#!/usr/bin/env python3
"""Draws the house: which room includes which, from the #include lines of src/, into docs/architecture.md.

Usage: draw_rooms.py [--check]

Without --check the drawing is written between its two marks in the document; with it the document is left alone, and
the exit status is 1 where the drawing there is not the one that the code calls for. An arrow that other arrows imply
is left out, so that the drawing can be read.
"""

import argparse
import pathlib
import sys

import check_layering

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- rooms -->\n", "<!-- /rooms -->\n"


def place_of(name, subrooms):
    """The room, or sub-room, that a file lies in: its path from src/ on."""
    parts = pathlib.PurePath(name).parts
    inner = len(parts) > 2 and parts[1] in subrooms.get(parts[0], [])
    return f"{parts[0]}/{parts[1]}" if inner else parts[0]


def arrows_of(root, subrooms):
    """All (from, to) between rooms and sub-rooms that product code has."""
    arrows = set()
    for path in sorted((root / "src").rglob("*.[ch]pp")):
        name = str(path.relative_to(root / "src"))
        if check_layering.is_test(name) or "testing/" in name:
            continue
        for line in check_layering.code_only(path.read_text()).splitlines():
            include = check_layering.INCLUDE.match(line)
            target = include and include.group(1)
            if target and (root / "src" / target).is_file() and "testing/" not in target:
                arrows.add((place_of(name, subrooms), place_of(target, subrooms)))
    return {(a, b) for a, b in arrows if a != b}


def reachable(start, arrows):
    seen, todo = set(), [start]
    while todo:
        here = todo.pop()
        for a, b in arrows:
            if a == here and b not in seen:
                seen.add(b)
                todo.append(b)
    return seen


def without_implied(arrows):
    """The arrows that no way over others leads along."""
    return {(a, b) for a, b in arrows
            if not any(b in reachable(c, arrows) for x, c in arrows if x == a and c != b)}


def drawing(root):
    rooms = check_layering.read_rooms(root)
    subrooms = {room: check_layering.read_subrooms(root, room) for room in rooms}
    arrows = without_implied(arrows_of(root, subrooms))
    def node(place):
        return place.replace("/", "_") + "_room"
    lines = ["```mermaid", "graph TD"]
    for room in rooms:
        if not (root / "src" / room).is_dir():
            continue
        if subrooms[room]:
            lines.append(f"  subgraph {room}")
            lines += [f"    {node(f'{room}/{each}')}[{room}/{each}]" for each in reversed(subrooms[room])]
            lines += [f"    {node(room)}[{room}]", "  end"]
        else:
            lines.append(f"  {node(room)}[{room}]")
    lines += [f"  {node(a)} --> {node(b)}" for a, b in sorted(arrows)] + ["```", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether the drawing is up to date")
    arguments = parser.parse_args()
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        sys.exit(f"draw_rooms: {DOCUMENT} has no {BEGIN.strip()} and {END.strip()} to draw between")
    wanted = before + BEGIN + drawing(ROOT) + END + after
    if arguments.check and wanted != text:
        print("draw_rooms: the drawing in docs/architecture.md is out of date; run test/layering/draw_rooms.py")
        return 1
    if not arguments.check:
        DOCUMENT.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
