#!/usr/bin/env python3
"""How the library starts, or does not: start.py LIBRARY PROGRAM (one that exits with 0)."""
import os
import subprocess
import sys
import tempfile

LIBRARY, PROGRAM = sys.argv[1:3]


def run(expected_status, expected_message, **variables):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as statistics:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HINTERLAND_")}
        environment.update(variables, LD_PRELOAD=LIBRARY, HINTERLAND_STAT_DIR=statistics)
        done = subprocess.run([PROGRAM], env=environment, capture_output=True, timeout=60)
    message = done.stderr.decode()
    if done.returncode != expected_status or (expected_message not in message) or (not expected_message and message):
        print(f"{variables}: status {done.returncode}, message {message!r}; expected {expected_status}, "
              f"{expected_message!r}")
        sys.exit(1)


# Not under `hinterland run`: as if the library were not there.
run(0, "")
run(0, "", HINTERLAND_BEST_EFFORT="1")
run(0, "", HINTERLAND_LOCAL="64M")
# The program's own jemalloc settings are not for ours.
run(0, "", HINTERLAND_LOCAL="64M", MALLOC_CONF="nonsense:true,narenas:77")
run(1, "the test asks for a failure", HINTERLAND_LOCAL="64M", HINTERLAND_TEST_START_FAILS="1")
run(0, "was started by a program that may, and runs without far memory", HINTERLAND_LOCAL="64M",
    HINTERLAND_TEST_START_FAILS="1", HINTERLAND_TEST_NOT_PERMITTED="1")
run(1, "unset it", HINTERLAND_LOCAL="64M", HINTERLAND_TEST_START_FAILS="1", HINTERLAND_BEST_EFFORT="0")
run(0, "without far memory", HINTERLAND_LOCAL="64M", HINTERLAND_TEST_START_FAILS="1", HINTERLAND_BEST_EFFORT="1")
