#!/usr/bin/env python3
"""Each promise in docs/reliability.md names its tests, and they exist: check_promises.py BUILD_DIRECTORY [PAGE]

A name is one of ctest's, `Suite.Test` of a unit test (looked for in the sources, since test programs that are not built
have none in ctest), or a file.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
HEADING = "## Promises and their tests"


def rows(text):
    """(promise, [names]) of the table."""
    section = text.split(HEADING, 1)[1].split("\n## ", 1)[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and cells[0] != "promise" and set(cells[0]) != {"-"}:
            yield cells[0], re.findall(r"`([^`]+)`", cells[2])


def ctest_names(build):
    listed = subprocess.run(["ctest", "--test-dir", build, "-N"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"Test +#\d+: (\S+)", listed))


def unit_tests():
    found = set()
    for folder, _, files in os.walk(os.path.join(ROOT, "src")):
        for name in files:
            if name.endswith("_test.cpp"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found.update(".".join(pair) for pair in re.findall(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)", file.read(), re.M))
    return found


def problems(text, known):
    table = list(rows(text))
    if not table:
        return [f"no table below '{HEADING}'"]
    found = [f"no test is named beside '{promise}'" for promise, names in table if not names]
    for promise, names in table:
        found += [f"'{name}', beside '{promise}', is no test" for name in names
                  if name not in known and not os.path.isfile(os.path.join(ROOT, name))]
    return found


def main():
    page = sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "docs", "reliability.md")
    with open(page, encoding="utf-8") as file:
        found = problems(file.read(), ctest_names(sys.argv[1]) | unit_tests())
    for problem in found:
        print(f"docs/reliability.md: {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
