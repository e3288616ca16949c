#!/usr/bin/env python3
"""The table of system calls in docs/reliability.md, from src/preload/system_calls.inc.

table.py --write   writes it there
table.py --check [--build DIRECTORY]
    the page has it as it is now; every call is in it once, those of this system's headers among them; every row says
    something in every column; every test that is named is one (of the folder, if given)
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src/preload/system_calls.inc"
PAGE = ROOT / "docs/reliability.md"
HEADERS = pathlib.Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
BEGIN, END = "<!-- system calls: begin -->\n", "<!-- system calls: end -->\n"
LAST, FIRST_OF_THE_SECOND_PART = 469, 424  # of Linux 6.18; 337 to 423 are other architectures'
HEAD = """| calls | names memory? | names descriptors? | how it reaches us | tested in |
|---|---|---|---|---|
"""


def read():
    text = SOURCE.read_text()
    kinds = {m[1]: m.groups()[1:] for m in re.finditer(
        r'^HL_KIND\((\w+), "([^"]*)", "([^"]*)", "([^"]*)", "([^"]*)"\)$', text, re.M)}
    calls = [(m[1], int(m[2]), m[3]) for m in re.finditer(r"^HL_CALL\((\w+), (\d+), (\w+)\)$", text, re.M)]
    lines = len(re.findall(r"^HL_(?:KIND|CALL)\(", text, re.M))
    if lines != len(kinds) + len(calls):
        sys.exit(f"{SOURCE.name}: {lines - len(kinds) - len(calls)} lines cannot be read")
    return kinds, calls


def table(kinds, calls):
    rows = []
    for kind, columns in kinds.items():
        names = " ".join(sorted(name for of, _, name in calls if of == kind))
        memory, descriptors, way, tests = columns
        rows.append(f"| {names} | {memory} | {descriptors} | {way} | {tests} |\n")
    return HEAD + "".join(rows)


def problems_of(kinds, calls, build):
    problems = []
    by_number = {}
    for kind, number, name in calls:
        if kind not in kinds:
            problems.append(f"{name}: no kind {kind}")
        if number in by_number:
            problems.append(f"{number} is there twice: {by_number[number]}, {name}")
        by_number[number] = name
    expected = [*range(337), *range(FIRST_OF_THE_SECOND_PART, LAST + 1)]
    problems += [f"no line for system call {number}" for number in expected if number not in by_number]
    problems += [f"there is no system call {number}" for number in by_number if number not in expected]
    if HEADERS.exists():
        for name, number in re.findall(r"^#define __NR_(\w+) (\d+)$", HEADERS.read_text(), re.M):
            if by_number.get(int(number), name) != name and int(number) <= LAST:
                problems.append(f"{number} is {name}, not {by_number[int(number)]}")
    for kind, columns in kinds.items():
        if not all(column.strip() for column in columns):
            problems.append(f"{kind}: an empty column")
        if kind not in {of for of, _, _ in calls}:
            problems.append(f"{kind}: no call is of this kind")
    if build is not None:
        known = tests_of(build)
        for kind, columns in kinds.items():
            problems += [f"{kind}: no test {test}" for test in columns[3].split(", ")
                         if test != "none yet" and not any(name == test or name.startswith(test + ".") for name in known)]
    return problems


def tests_of(build):
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], stdout=subprocess.PIPE, check=True)
    return [test["name"] for test in json.loads(listed.stdout)["tests"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--build")
    options = parser.parse_args()
    kinds, calls = read()
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        sys.exit(f"{PAGE.name} has no place for the table ({BEGIN.strip()} to {END.strip()})")
    made = before + BEGIN + table(kinds, calls) + END + after
    if options.write:
        PAGE.write_text(made)
    problems = problems_of(kinds, calls, options.build)
    if options.check and made != page:
        problems.append(f"{PAGE.name} differs from {SOURCE.name}: {pathlib.Path(__file__).name} --write")
    print("\n".join(problems) or f"{len(calls)} system calls")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
