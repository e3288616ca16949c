#!/usr/bin/env python3
"""Runs a program natively and with a preloaded library, and compares standard output and exit status.

compare.py LIBRARY PROGRAM [ARGUMENT...]

HINTERLAND_TEST_LIBRARY names another library (the real one), HINTERLAND_TEST_FAR its device (mem:; @TEMPORARY@ in it
stands for a directory that goes afterwards, and for tcp: a server is started), and HINTERLAND_TEST_LOCAL its budget; with HINTERLAND_TEST_OFF there is none, and the library does nothing.
HINTERLAND_TEST_DIES says that children of it are killed. HINTERLAND_TEST_BESIDE is preloaded both times, before or after
ours: `before LIBRARY` or `after LIBRARY`; where the kernel has no MOVE that is the signal library, as for `hinterland
run` (docs/adr/0078-pins-without-move.md). HINTERLAND_TEST_NEEDS=move or thread-descriptors skips the test where the
kernel has not that. Exit status: 0 equal, 1 different, 77 skipped (the program exits with 77 natively).
"""
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SPACE = 1 << 30  # of a server, bytes


def run(command, extra):
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    environment.update(extra)
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=300)
    return done.returncode, done.stdout, done.stderr


def has_move(library):
    """Whether the kernel has UFFDIO_MOVE (Linux 6.8); taken to be so where there is no command to ask."""
    command = os.path.join(os.path.dirname(os.path.abspath(library)), "..", "bin", "hinterland")
    if not os.access(command, os.X_OK):
        return True
    asked = subprocess.run([command, "doctor", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=100)
    states = {check["name"]: check["state"] for check in json.loads(asked.stdout or '{"checks": []}')["checks"]}
    return states.get("MOVE", "ok") == "ok"


def has_thread_descriptors():
    """Linux 6.9: without them nothing is taken back from the keeper (docs/adr/0039-a-keeper-of-descriptors.md)."""
    try:
        os.close(os.pidfd_open(os.getpid(), os.O_EXCL))
    except OSError:
        return False
    return True


def signal_library(library):
    path = os.path.join(os.path.dirname(os.path.abspath(library)), "libhinterland-signal.so")
    return path if os.path.exists(path) else ""


def left_after_a_while(folder):
    """What stays there: helpers of the program's may end a moment after it."""
    for _ in range(30):
        if not os.listdir(folder):
            break
        time.sleep(0.1)
    return os.listdir(folder)


def device_for(library, folder):
    """A context whose value is the URL."""
    wanted = os.environ.get("HINTERLAND_TEST_FAR", "mem:").replace("@TEMPORARY@", folder)
    if wanted != "tcp:":
        return contextlib.nullcontext(wanted)
    sys.path.insert(0, os.path.join(HERE, "..", "programs"))
    from harness import devices, launcher  # noqa: PLC0415: few tests need them
    command = os.path.join(os.path.dirname(library), "..", "bin", "hinterland")
    return devices.opened(wanted, launcher.Launcher(command), folder, SPACE)


def main():
    library, command = sys.argv[1], sys.argv[2:]
    library = os.environ.get("HINTERLAND_TEST_LIBRARY", library)
    needs = os.environ.get("HINTERLAND_TEST_NEEDS")
    if needs == "thread-descriptors" and not has_thread_descriptors():
        print("this kernel has no descriptors of threads (Linux 6.9), without which that is not supported (ADR 0039)")
        return 77
    where, beside = (os.environ.get("HINTERLAND_TEST_BESIDE") or "after ").split(" ", 1)
    if not has_move(library):
        if needs == "move":
            print("this kernel has no UFFDIO_MOVE (Linux 6.8), without which that is not supported (ADR 0078)")
            return 77
        beside = beside or signal_library(library)
    native = run(command, {"LD_PRELOAD": beside} if beside else {})
    libraries = " ".join([library, beside][::-1 if where == "before" else 1])
    if native[0] == 77:
        sys.stderr.buffer.write(native[2])
        return 77
    with tempfile.TemporaryDirectory(dir="/dev/shm") as statistics, tempfile.TemporaryDirectory() as temporary, \
            device_for(library, temporary) as far:
        settings = {
            "HINTERLAND_LOCAL": os.environ.get("HINTERLAND_TEST_LOCAL", "64M"),
            "HINTERLAND_FAR": far,
            "HINTERLAND_STAT_DIR": statistics,
        }
        if os.environ.get("HINTERLAND_TEST_OFF"):
            settings = {}
        preloaded = run(command, {"LD_PRELOAD": libraries, "EXPECT_PRELOADED": "1"} | settings)
        left_over = left_after_a_while(statistics)
    ended_at_start = b"userfaultfd is not permitted" in preloaded[2] and b"a forked child" not in preloaded[2]
    if ended_at_start and native[:2] != preloaded[:2]:
        sys.stderr.buffer.write(preloaded[2])
        return 77
    if os.environ.get("HINTERLAND_TEST_DIES"):  # children that a signal ends leave their figures; the next command cleans up
        left_over = []
    missing = b"cannot be preloaded" in preloaded[2]
    if native[:2] == preloaded[:2] and not left_over and not missing:
        return 0
    print(f"status: native {native[0]}, preloaded {preloaded[0]}")
    if left_over:
        print(f"left in the statistics directory: {left_over}")
    print(preloaded[2].decode(errors="replace"))
    ours, theirs = preloaded[1].splitlines(), native[1].splitlines()
    for number, (a, b) in enumerate(zip(theirs + [b"<end>"], ours + [b"<end>"]), 1):
        if a != b:
            print(f"line {number}:\n  native    {a.decode(errors='replace')}\n  preloaded {b.decode(errors='replace')}")
            break
    return 1


if __name__ == "__main__":
    sys.exit(main())
