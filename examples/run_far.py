#!/usr/bin/env python3
"""Runs an example that creates a region: it must print what is expected, and its region must be far.

run_far.py EXPECTED COMMAND...     77 where this machine may not page
"""
import os
import subprocess
import sys


def main():
    expected, command = sys.argv[1], sys.argv[2:]
    environment = {**os.environ, "HINTERLAND_LOCAL": "16M", "HINTERLAND_FAR": "mem:", "HINTERLAND_VERBOSE": "2"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=150, check=False)
    print(done.stdout, done.stderr)
    if "userfaultfd is not permitted" in done.stderr:
        return 77
    is_far = "paging began" in done.stderr
    return 0 if done.returncode == 0 and done.stdout.strip() == expected and is_far else 1


if __name__ == "__main__":
    sys.exit(main())
