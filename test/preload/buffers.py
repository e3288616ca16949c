#!/usr/bin/env python3
"""A buffer that a program takes and frees again and again stays with its thread, once paging has begun: it is neither given
back to the pager nor cleared each time. Large ones are given back at once, so that what was freed is not written out.

buffers.py HINTERLAND
"""
import json
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
TIMES = 2000
CODE = f"for _ in range({TIMES}): bytearray(int(__import__('sys').argv[1]))"


def discarded(hinterland, size):
    """Pages that the heap gave back."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        done = subprocess.run([hinterland, "run", "--local", "32M", "--far", "mem:", "--takeover", "start", "--report", report,
                               "--", "/usr/bin/python3", "-c", CODE, str(size)], capture_output=True, text=True, timeout=100)
        if "userfaultfd" in done.stderr and done.returncode != 0:
            print(done.stderr)
            sys.exit(SKIPPED)
        assert done.returncode == 0, done.stderr
        return json.loads(report.read_text())["totals"]["counters"]["pages_discarded"]


def main():
    if not pathlib.Path(sys.argv[1]).exists():
        print(f"there is no {sys.argv[1]}: build it first")
        sys.exit(SKIPPED)
    for size in 45000, 120000:
        pages = discarded(sys.argv[1], size)
        print(f"{TIMES} times {size} bytes: {pages} pages given back")
        assert pages < TIMES, "each is given back"
    pages = discarded(sys.argv[1], 1 << 20)
    print(f"{TIMES} times 1 MiB: {pages} pages given back")
    assert pages > TIMES * 100, "they are not given back at once"


main()
