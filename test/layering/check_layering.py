#!/usr/bin/env python3
"""Holds the tree to its room order and to the part of the house style that a machine can see.

Usage: check_layering.py [ROOT] [--no-compile]

Prints one line a finding (file:line: what, and what to do) and exits 1 when there is any; notes do not count.
The room order is read from the top-level CMakeLists.txt, the only place where it is written down for machines.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

CODE = {".cpp", ".hpp", ".c", ".h"}
TEXT = CODE | {".py", ".md", ".cmake", ".sh", ".json", ".toml", ".yml", ".in", ".txt"}
SKIPPED_FOLDERS = {"build", ".git", "__pycache__", ".cache"}
LINES_MAX = 800   # past this a file is split
LINES_NOTED = 400  # past this it is listed, so that somebody thinks about it

# Not the words themselves, so that this file passes its own check.
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b")
DOCUMENT = re.compile(r"[\w./-]*[\w-]+\.md\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
PRINTS = re.compile(r"(?:\bstd::(?:cout|cerr|clog|print|println)\b|\bfmt::print\b"
                    r"|(?<![\w.>])(?:v?f?printf|v?dprintf|f?puts|putchar|perror)\s*\()")
# Comments and literals, so that words in them are not taken for code.
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)


def is_test(path):
    """Tests, fuzz targets and benchmarks beside their unit may print; what they test may not."""
    return re.search(r"_(test|fuzz|benchmark)\.\w+$|(^|/)testing/", path) is not None


def code_only(text):
    """The text with comments and literals blanked, line numbers kept; include lines keep their file names."""
    def blank(match):
        line_start = text.rfind("\n", 0, match.start()) + 1
        if match.group().startswith('"') and INCLUDE.match(text[line_start:match.end()]):
            return match.group()
        if text[match.start()] == "'" and match.start() and text[match.start() - 1].isalnum():
            return match.group()  # a digit separator: 1'000'000
        return "".join("\n" if c == "\n" else " " for c in match.group())
    return NOT_CODE.sub(blank, text)


def read_rooms(root):
    """The rooms, lowest first."""
    found = re.search(r"set\(HINTERLAND_ROOMS\s+([^)]*)\)", (root / "CMakeLists.txt").read_text())
    if not found:
        sys.exit("check_layering: CMakeLists.txt has no set(HINTERLAND_ROOMS ...) to read the room order from")
    return found.group(1).split()


def read_subrooms(root, room):
    """The sub-rooms of a room, lowest first, if it has any: set(SUBROOMS ...) in its CMakeLists.txt."""
    lists = root / "src" / room / "CMakeLists.txt"
    found = re.search(r"set\(SUBROOMS\s+([^)]*)\)", lists.read_text()) if lists.is_file() else None
    return found.group(1).split() if found else []


def read_private(root, room):
    """The headers that only their own sub-room includes: set(PRIVATE_HEADERS ...) in the room's CMakeLists.txt."""
    lists = root / "src" / room / "CMakeLists.txt"
    found = re.search(r"set\(PRIVATE_HEADERS\s+([^)]*)\)", lists.read_text()) if lists.is_file() else None
    return {f"{room}/{name}" for name in found.group(1).split()} if found else set()


class Checker:
    def __init__(self, root, rooms):
        self.root, self.rooms = root, rooms
        self.subrooms = {room: read_subrooms(root, room) for room in rooms}
        self.private = set().union(*(read_private(root, room) for room in rooms))
        self.findings, self.notes = [], []

    def find(self, path, line, message):
        self.findings.append(f"{path}:{line}: {message}")

    def files(self):
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(f for f in folders if f not in SKIPPED_FOLDERS)
            for name in sorted(names):
                path = pathlib.Path(folder, name)
                if path.suffix in TEXT or name in ("Makefile", "run") or ".ci" in path.parts:
                    yield str(path.relative_to(self.root))

    # --- room order ---------------------------------------------------------------------------------------------
    def check_include(self, path, line, name, quoted):
        if name.startswith("hinterland/"):
            if not (self.root / "include" / name).is_file():
                self.find(path, line, f'"{name}" is not in include/')
            return
        if path.startswith("include/"):
            if quoted:
                self.find(path, line, f'a public header includes "{name}"; users have only include/hinterland')
            return
        target = name.split("/")[0]
        in_src = (self.root / "src" / name).is_file()
        if quoted and not in_src:
            self.find(path, line, f'"{name}" is not in src/; write the name from src/ on: "room/file.hpp"')
        if not in_src or not path.startswith("src/"):
            return
        room = path.split("/")[1]
        if target in self.rooms and room in self.rooms and self.rooms.index(target) > self.rooms.index(room):
            self.find(path, line, f'room {room} includes "{name}", but {target} is a higher room; '
                                  f"the order is {' '.join(self.rooms)}")
        outside = pathlib.PurePath(path).parent != pathlib.PurePath("src", name).parent
        if outside and name in self.private and not is_test(path):
            self.find(path, line, f'"{name}" is private to {name.rpartition("/")[0]}; use what that sub-room offers')
        if target == room and not is_test(path):
            self.check_include_within(path, line, name, room)

    def check_include_within(self, path, line, name, room):
        """Sub-rooms have an order, too. What lies in the room's own folder is above all of them; what lies in testing/
        stands in for lower parts."""
        order = self.subrooms.get(room, [])
        if name.startswith(f"{room}/testing/"):
            return
        def height(file):
            folder = pathlib.PurePath(file).parts[1]
            return order.index(folder) if folder in order else len(order)
        if order and height(name) > height(path.removeprefix("src/")):
            here = pathlib.PurePath(path).parts[2]
            self.find(path, line, f'sub-room {room}/{here} includes "{name}", which is above it; '
                                  f"the order is {' '.join(order)}, and then {room} itself")

    def check_room_known(self, path):
        parts = path.split("/")
        if parts[0] == "src" and len(parts) > 2 and parts[1] not in self.rooms:
            self.find(path, 1, f"src/{parts[1]} is not a room; add it to HINTERLAND_ROOMS in CMakeLists.txt")
        subrooms = self.subrooms.get(parts[1], []) if parts[0] == "src" and len(parts) > 3 else []
        if subrooms and parts[2] not in subrooms + ["testing"]:
            self.find(path, 1, f"src/{parts[1]}/{parts[2]} is not a sub-room; add it to SUBROOMS in "
                               f"src/{parts[1]}/CMakeLists.txt")

    # --- style --------------------------------------------------------------------------------------------------
    def check_code(self, path, text):
        self.check_room_known(path)
        lines = text.splitlines()
        if len(lines) > LINES_MAX:
            self.find(path, LINES_MAX, f"{len(lines)} lines; split it, {LINES_MAX} is the limit")
        elif len(lines) > LINES_NOTED:
            self.notes.append(f"{path}: {len(lines)} lines, more than {LINES_NOTED}")
        if not text.lstrip().startswith(("//", "/*")):
            if path.endswith((".hpp", ".h")):
                self.find(path, 1, "open the header with a comment that says what it is for")
            elif not self.header_of(path).is_file():  # else the header of the unit says so
                self.notes.append(f"{path}: does not open with a comment that says what it is for")
        if path.startswith(("src/", "include/")) and not is_test(path):
            self.check_documents(path, lines)
        library = path.startswith("src/") and not path.startswith("src/cli/") and not is_test(path)
        for number, line in enumerate(code_only(text).splitlines(), 1):
            include = INCLUDE.match(line)
            if include and path.startswith(("src/", "include/")):
                self.check_include(path, number, include.group(1) or include.group(2), bool(include.group(1)))
            printing = PRINTS.search(line) if library else None
            if printing:
                self.find(path, number, f"{printing.group().rstrip('( ')} in library code; "
                                        "return an Error, or use base/log.hpp for the rare warning")

    def check_documents(self, path, lines):
        """What a comment refers a reader to is there."""
        for number, line in enumerate(lines, 1):
            for name in DOCUMENT.findall(line.partition("//")[2]):
                if "http" not in line and not (self.root / name).is_file():
                    self.find(path, number, f"there is no {name} (paths are from the root of the repository)")

    def header_of(self, path):
        unit = re.sub(r"_(test|fuzz|benchmark)$", "", pathlib.Path(path).stem)
        return (self.root / path).with_name(unit + ".hpp")

    def check_text(self, path, text):
        for number, line in enumerate(text.split("\n"), 1):
            if line.rstrip("\r") != line.rstrip():
                self.find(path, number, "trailing white space")
            if UNFINISHED.search(line) and pathlib.Path(path).suffix in CODE | {".py", ".cmake", ".sh"}:
                self.find(path, number, "unfinished-work mark; finish it, or open an issue")

    # --- public headers -----------------------------------------------------------------------------------------
    def compile_alone(self, path, language, standard):
        command = [os.environ.get("CXX" if language == "c++" else "CC") or ("g++" if language == "c++" else "gcc"),
                   "-x", language, f"-std={standard}", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                   "-I", str(self.root / "include"), "-"]
        name = path.removeprefix("include/")
        done = subprocess.run(command, input=f'#include "{name}"\n', capture_output=True, text=True, check=False)
        if done.returncode:
            first = next((l for l in done.stderr.splitlines() if "error" in l), done.stderr.strip())
            self.find(path, 1, f"does not compile alone as {standard}: {first}")

    def check_public_header(self, path):
        if path.endswith(".h"):
            self.compile_alone(path, "c", "c11")
        self.compile_alone(path, "c++", "c++20")

    def run(self, compile_headers=True):
        for path in self.files():
            text = (self.root / path).read_text(encoding="utf-8", errors="replace")
            self.check_text(path, text)
            if pathlib.Path(path).suffix in CODE:
                self.check_code(path, text)
                if compile_headers and path.startswith("include/") and path.endswith((".h", ".hpp")):
                    self.check_public_header(path)
        return not self.findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--no-compile", action="store_true", help="do not compile each public header alone")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    checker = Checker(root, read_rooms(root))
    good = checker.run(compile_headers=not arguments.no_compile)
    for note in checker.notes:
        print(f"note: {note}")
    for finding in checker.findings:
        print(finding)
    print("layering: " + ("no findings" if good else f"{len(checker.findings)} findings"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
