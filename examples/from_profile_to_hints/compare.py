#!/usr/bin/python3
"""Puts the figures of reports side by side that tell what hints did: compare.py BEFORE.json AFTER.json"""

import json
import sys

NAMES = ("faults_read", "faults_write", "faults_write_protect", "faults_refault", "faults_first_touch", "hint_pages_in",
         "hint_refaults", "hint_protection_cleared")


def counters_of(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["totals"]["counters"]


def main():
    columns = [counters_of(path) for path in sys.argv[1:]]
    for name in NAMES:
        print(f"{name:24}" + "".join(f"{counters[name]:12}" for counters in columns))


if __name__ == "__main__":
    main()
