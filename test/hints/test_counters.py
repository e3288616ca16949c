#!/usr/bin/env python3
"""Hinted random accesses take no faults: the counters of a hinted run against those of the same run without hints.

test_counters.py HINTERLAND ACCESS NOT_PIE
"""
import json
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77


def run(hinterland, command, far="mem:", local="8M"):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        done = subprocess.run([hinterland, "run", "--local", local, "--far", far, "--takeover", "start", "--report",
                               report, "--", *command], capture_output=True, text=True, timeout=150)
        if ("userfaultfd" in done.stderr or "debug build" in done.stderr) and done.returncode != 0:
            print(done.stderr)
            sys.exit(SKIPPED)
        assert done.returncode == 0, done.stderr
        return json.loads(report.read_text())["totals"]["counters"]


def faults(counters):
    """Those that a hint can spare: on pages that were touched before."""
    return sum(counters[name] for name in ("faults_read", "faults_write", "faults_write_protect", "faults_refault"))


def main():
    hinterland, access, not_pie = sys.argv[1:]
    for far in "mem:", "zmem:":
        for pattern in "random-read", "random-write", "sequential-read", "sequential-write":
            command = [access, pattern, "--size", "32M", "--accesses", "40960"]
            plain, hinted = run(hinterland, command, far), run(hinterland, command + ["--hints"], far)
            spared = hinted["hint_pages_in"] + hinted["hint_refaults"]
            print(f"{far} {pattern}: {faults(plain)} faults; with hints {faults(hinted)}, {spared} pages by hints")
            assert faults(plain) > 400, "the run without hints does not page"
            assert plain["hint_calls"] == 0, "hints without hints"
            # The main thread's other memory, and pages that others move at the moment of the hint, still fault.
            assert faults(hinted) < max(faults(plain) // 20, 300), "hinted accesses fault"
            assert spared > 20000, "the hints brought next to nothing"
            assert hinted["hint_calls"] < 41000 + 8192
    # In a program that is not position-independent, the linker must not have decided that nobody listens.
    counters = run(hinterland, [not_pie], local="4M")
    assert counters["hint_pages_in"] > 10000, "hints of a program that is not position-independent are not heard"


if __name__ == "__main__":
    main()
