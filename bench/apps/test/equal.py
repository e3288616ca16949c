#!/usr/bin/python3
"""An application without hints, with hints, and with hints and without in far memory: the same operations and check.

equal.py HINTERLAND APP APP_PLAIN LOCAL [OPTION...]

Exit status: 0 equal, 1 not, 77 where the kernel has no userfaultfd for us.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
SAME = ("footprint_bytes", "operations", "check")


def run(argv):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=100)
    if done.returncode != 0 and "userfaultfd is not permitted" in done.stderr:
        print(done.stderr)
        sys.exit(SKIPPED)
    assert done.returncode == 0, f"{argv}: exit status {done.returncode}\n{done.stderr}"
    return json.loads(done.stdout)


def far(hinterland, local, argv, folder):
    """What it printed, and the counters of far memory."""
    report = pathlib.Path(folder, "report.json")
    result = run([hinterland, "run", "--local", local, "--far", "mem:", "--takeover", "start", "--force", "--report",
                  report, "--", *argv])
    return result, json.loads(report.read_text())["totals"]["counters"]


def main():
    hinterland, hinted, plain, local, *options = sys.argv[1:]
    options = [*options, "--verify"]
    wanted = run([plain, *options])
    assert not wanted["hinted"] and wanted["verified"] and wanted["operations"] > 0
    results = {"hinted": run([hinted, *options])}
    assert results["hinted"]["hinted"]
    with tempfile.TemporaryDirectory() as folder:
        results["far without hints"], counters = far(hinterland, local, [plain, *options], folder)
        assert counters["hint_calls"] == 0, "the application without hints has hints"
        assert counters["pages_in"] > 1000, f"it hardly pages: {counters['pages_in']} pages in; give less than {local}"
        results["far with hints"], counters = far(hinterland, local, [hinted, *options], folder)
        assert counters["hint_pages_in"] > 0, "no hint has brought a page"
    for way, result in results.items():
        for name in SAME:
            assert result[name] == wanted[name], f"{name} {way}: {result[name]}, and plain {wanted[name]}"


if __name__ == "__main__":
    main()
