#!/usr/bin/env python3
"""Runs the program that measures how much of its caller's stack each call uses, natively and on far memory.

depth.py LIBRARY PROGRAM [--sizes=FIRST-LAST/STEP] [WAY...]

Other results than natively are a failure, and so is a call that uses more than 512 bytes beyond what it uses natively.
HINTERLAND_TEST_BESIDE names a library that is preloaded after ours, --list prints every call. Exit status: 0 fine,
1 not, 77 skipped (userfaultfd is not permitted here).
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "preload"))
import compare  # noqa: E402

LIMIT = 512
# On a thread's own stack of more than 16 KiB the heap works where it is called (src/preload/stack_room.hpp).
HEAP = {"malloc", "malloc/100K", "malloc/9M", "calloc", "memalign", "realloc", "free", "free/5M", "malloc_usable_size",
        "fdopen"}
# So do hints (src/runtime/entry.cpp).
HEAP |= {"hl_read", "hl_write", "hl_seq_read", "hl_prefetch", "hl_cold", "hl_pin", "hl_unpin", "hl_discard"}


def deepest(output):
    """The most that each call used, and all lines without that figure."""
    most, others = {}, []
    for line in output.decode().splitlines():
        words = line.split()
        if len(words) == 5:
            used = int(words.pop())
            if words[0] not in HEAP or words[1] != "thread" or int(words[2]) <= 16:
                most[words[0]] = max(most.get(words[0], 0), used)
        others.append(" ".join(words))
    return most, others


def main():
    words = [word for word in sys.argv[1:] if word != "--list"]
    library, command = words[0], words[1:]
    native_status, native, _ = compare.run(command, {})
    beside = os.environ.get("HINTERLAND_TEST_BESIDE", "").removeprefix("after ")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as statistics:
        settings = {"HINTERLAND_LOCAL": "8M", "HINTERLAND_FAR": "mem:", "HINTERLAND_STAT_DIR": statistics,
                    "HINTERLAND_TAKEOVER": "start", "EXPECT_PRELOADED": "1",
                    "LD_PRELOAD": f"{library} {beside}"}
        status, output, errors = compare.run(command, settings)
    if b"userfaultfd is not permitted" in errors:
        sys.stderr.buffer.write(errors)
        return 77
    natively, expected = deepest(native)
    here, lines = deepest(output)
    allowed = {call: LIMIT + natively.get(call, 0) for call in here}
    problems = [f"{call}: {used} bytes of the caller's stack, natively {natively[call]}" for call, used in here.items()
                if used > allowed[call]]
    if (status, lines) != (native_status, expected):
        problems.append(f"status {status}, natively {native_status}; last line: {(lines or ['none'])[-1]}")
        problems.append(errors.decode(errors="replace"))
    if "--list" in sys.argv:
        for call, used in sorted(here.items(), key=lambda entry: entry[1]):
            print(f"{used:6} {natively.get(call, 0):6} {call}")
    print("\n".join(problems) or f"{len(here)} calls, at most {max(here.values())} bytes")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
