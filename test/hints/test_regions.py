#!/usr/bin/env python3
"""Regions in a program that is not linked, one that is, one that is preloaded, both, and one that may not page.

test_regions.py HINTERLAND PLAIN LINKED
"""
import os
import subprocess
import sys

SKIPPED = 77
FAR = {"HINTERLAND_LOCAL": "8M"}
DEVICES = ("zmem:", "sim:latency=20us,inner=mem:")


def run(words, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HINTERLAND_")}
    done = subprocess.run(words, env={**environment, **variables}, capture_output=True, text=True, timeout=100,
                          check=False)
    print(words, variables, done.returncode, done.stdout.strip(), done.stderr.strip())
    return done


def expect(done, said):
    assert done.returncode == 0 and done.stdout.strip().endswith(said), "not as expected"


def main():
    hinterland, plain, linked = sys.argv[1:]
    expect(run([plain, "ordinary"]), "0 wrong, error 0")
    first = run([linked, "far"], **FAR, HINTERLAND_FAR="mem:")
    if "userfaultfd is not permitted" in first.stderr:
        return SKIPPED
    expect(first, "0 wrong, error 0")
    for device in DEVICES:
        expect(run([linked, "far"], **FAR, HINTERLAND_FAR=device), "0 wrong, error 0")
    # With faults served by signal; without the library that system calls need, that is said.
    library = os.path.join(os.path.dirname(os.path.dirname(hinterland)), "lib", "libhinterland-signal.so")
    for device in DEVICES:
        expect(run([linked, "far"], **FAR, HINTERLAND_FAR=device, HINTERLAND_FAULT="signal", LD_PRELOAD=library),
               "0 wrong, error 0")
    alone = run([linked, "far"], **FAR, HINTERLAND_FAR="mem:", HINTERLAND_FAULT="signal")
    expect(alone, "0 wrong, error 0")
    assert "libhinterland-signal.so is not loaded" in alone.stderr
    before = [hinterland, "run", "--local", "8M", "--takeover", "start", "--far", "mem:", "--"]
    for program in plain, linked:
        expect(run([*before, program, "far"]), "0 wrong, error 0")
    # Settings and devices that are wrong: an error, with what to do.
    wrong = run([linked, "far"], HINTERLAND_LOCAL="1K")
    assert "0 wrong, error 22" in wrong.stdout and "4M" in wrong.stderr
    wrong = run([linked, "far"], **FAR, HINTERLAND_FAR="nonsense:")
    assert "error 0" not in wrong.stdout and "nonsense" in wrong.stderr
    with open("/proc/sys/vm/unprivileged_userfaultfd", encoding="ascii") as file:
        everybody_may = file.read().strip() == "1"
    if os.geteuid() == 0 and not everybody_may and os.path.exists("/usr/bin/setpriv"):
        alone = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        refused = run([*alone, linked, "far"], **FAR)
        if "cannot open shared object" not in refused.stderr and "Permission denied" not in refused.stderr:
            assert "error 1" in refused.stdout and "userfaultfd" in refused.stderr
    return 0


if __name__ == "__main__":
    sys.exit(main())
