#!/usr/bin/env python3
"""Holds the dereference of a local far object to its instructions, and guards: fast_path.py OBJECT_FILE...

Of a plain pointer it is `mov; ret`. AIFM has three micro-operations more (OSDI 2020, 4.2.1); here a comparison and its
branch, which processors fuse, and for reading a mask.

A guard has three to name its restartable sequence, and nine from the address to the object. TrackFM's has 14 (ASPLOS
2024, 3.3), to which its look at the address and its scope come.
"""
import re
import subprocess
import sys

EXPECTED = {"dereference_to_read": ["mov", "test", "jne", "and", "ret"],
            "dereference_to_write": ["mov", "test", "jne", "ret"]}
SEQUENCE = ["mov", "lea", "mov"]
FOUND = ["rorx", "shrx", "mov", "test", "jne", "and", "je", "bzhi"]
EXPECTED |= {"hl_guard_read_8": [*SEQUENCE, *FOUND, "mov", "ret"], "hl_guard_write_8": [*SEQUENCE, *FOUND, "mov", "ret"]}


def instructions(listing, function):
    """Up to the first return: what is executed where the branch is not taken."""
    body = listing.split(f"<{function}>:\n", 1)[1]
    found = []
    for name in re.findall(r"^\s*[0-9a-f]+:\t([a-z]+)", body, re.MULTILINE):
        if name not in ("push", "pop", "endbr") and not name.startswith("nop"):
            found.append(name)
        if name == "ret":
            break
    return found


def main():
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", *sys.argv[1:]], capture_output=True, text=True,
                             check=True).stdout
    wrong = 0
    for function, expected in EXPECTED.items():
        found = instructions(listing, function)
        if found != expected:
            print(f"{function}: {' '.join(found)}; expected {' '.join(expected)}")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
