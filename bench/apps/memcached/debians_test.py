#!/usr/bin/python3
"""Memcached under load, natively and far: the same answers. Debian's own, without hints; and, where bench/apps/memcached/
build was run, the one with hints.

debians_test.py HINTERLAND APP APP_PLAIN

Exit status: 0, 1 when something is wrong, 77 where memcached is not installed or userfaultfd not permitted.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
OPTIONS = ["--size", "24M", "--threads", "2", "--requests", "8000", "--set-percent", "20"]


def run(*argv):
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=100)
    if done.returncode != 0 and "userfaultfd is not permitted" in done.stderr:
        print(done.stderr)
        sys.exit(SKIPPED)
    assert done.returncode == 0, f"{argv}: exit status {done.returncode}\n{done.stderr}"
    return json.loads(done.stdout)


def far(hinterland, *argv):
    """What it printed, and the counters of all processes."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        result = run(hinterland, "run", "--local", "6M", "--far", "mem:", "--takeover", "start", "--report", report, "--",
                     *argv)
        return result, json.loads(report.read_text())["totals"]["counters"]


def refused(status, message, *argv):
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=60)
    assert done.returncode == status and message in done.stderr and not done.stdout, f"{argv}: {done}"


def main():
    hinterland, hinted, plain = sys.argv[1:]
    program = shutil.which("memcached")
    if program is None:
        print("memcached is not installed (apt-get install memcached)")
        return SKIPPED
    refused(2, "there is no program", plain, *OPTIONS, "--program", "/nowhere/memcached")
    refused(1, "ended at its start", plain, *OPTIONS, "--program", "/bin/false")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = folder
        wanted = run(plain, *OPTIONS, "--program", program)
        result, counters = far(hinterland, plain, *OPTIONS, "--program", program)
        assert (result["check"], result["operations"]) == (wanted["check"], wanted["operations"]), result
        assert counters["pages_in"] > 1000, f"it hardly pages: {counters}"
        if os.path.exists(os.path.join(os.path.dirname(hinted), "memcached-hinted")):
            result, counters = far(hinterland, hinted, *OPTIONS)
            assert result["check"] == wanted["check"], result
            assert counters["hint_pages_in"] > 1000, f"hints bring next to nothing: {counters}"
        assert os.listdir(folder) == [], "files left behind"
    return 0


if __name__ == "__main__":
    sys.exit(main())
