#!/usr/bin/env python3
"""Applies one small mistake at a time to src/paging, src/fiber and src/object, and shows that a test of the room notices each.

Usage: run.py [--only TEXT] [--jobs N] | --check

Works on a copy of the tree in a temporary folder, so the tree itself is never changed. Exits 1 when a mutant survives or
no longer applies.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from mutants import FIBER_MUTANTS, MUTANTS, OBJECT_MUTANTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Room: its tests, the seconds that are more than they take together on a busy machine, and its mutants.
ROOMS = {
    "paging": (["page_machine_test", "machine_threads_test", "page_machine_schedules_test", "moved_out_test",
                "pager_pins_test", "paging_test"], 600, MUTANTS),
    "fiber": (["fiber_sleeping_test", "fiber_test", "fiber_hinting_test"], 120, FIBER_MUTANTS),
    "object": (["word_schedules_test", "object_guards_test"], 400, OBJECT_MUTANTS),
}


def pattern_of(text):
    return re.compile(r"\s+".join(re.escape(word) for word in text.split()))


def build(tree, jobs, targets):
    return subprocess.run(["ninja", "-C", tree / "build", f"-j{jobs}", *targets], capture_output=True, text=True)


def noticed(tree, targets, seconds_max):
    """By which test and how: its first message, "hung" or "crashed"; None when all passed."""
    for target in targets:
        if how := noticed_by(tree / "build/bin" / target, seconds_max):
            return f"{target}: {how}"
    return None


def noticed_by(program, seconds_max):
    try:
        done = subprocess.run([program, "--gtest_brief=1"], capture_output=True, text=True, errors="replace",
                              timeout=seconds_max, env={"GTEST_FAIL_FAST": "1", "HINTERLAND_TEST_SEED": "1"})
    except subprocess.TimeoutExpired:
        return "hung"
    if done.returncode == 0:
        return None
    said = re.search(r'Which is: "(.*)"', done.stdout)
    return said.group(1) if said else f"failed ({done.returncode})"


def places_of(text, path):
    return len(pattern_of(text).findall(path.read_text()))


def check():
    """Whether each mutant's text is still in its file exactly once: the sources change, and the list must follow."""
    wrong = [(name, file) for room, (_, _, mutants) in ROOMS.items() for _, name, file, text, _ in mutants
             if places_of(text, ROOT / "src" / room / file) != 1]
    for name, file in wrong:
        print(f"mutation: {name}: its text is not in {file} exactly once", file=sys.stderr)
    return 1 if wrong else 0


def try_mutant(tree, jobs, room, invariant, name, file, text, replacement):
    path = tree / "src" / room / file
    original = path.read_text()
    if places_of(text, path) != 1:
        return f"does not apply: the text is not in {file} exactly once"
    path.write_text(pattern_of(text).sub(lambda _: replacement, original))
    targets, seconds_max, _ = ROOMS[room]
    try:
        built = build(tree, jobs, targets)
        if built.returncode != 0:
            return "does not compile:\n" + built.stdout[-1500:]
        how = noticed(tree, targets, seconds_max)
        print(f"{'noticed' if how else 'SURVIVED':9} {invariant or '-':2} {name}" + (f": {how[:90]}" if how else ""), flush=True)
        return "" if how else "survived"
    finally:
        path.write_text(original)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only mutants whose invariant and name hold this text")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="only look whether each mutant can be applied")
    options = parser.parse_args()
    if options.check:
        return check()
    with tempfile.TemporaryDirectory(prefix="hinterland-mutation-") as folder:
        tree = pathlib.Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns("build*", ".git"))
        subprocess.run(["cmake", "-S", tree, "-B", tree / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS=-O1"],
                       check=True, stdout=subprocess.DEVNULL)
        bad, tried, begun = 0, 0, time.monotonic()
        for room, (targets, seconds_max, mutants) in ROOMS.items():
            wanted = [each for each in mutants if options.only in f"{each[0]} {each[1]}"]
            if wanted and (build(tree, options.jobs, targets).returncode != 0 or
                           noticed(tree, targets, seconds_max) is not None):
                print(f"mutation: the unchanged room {room} does not build or pass", file=sys.stderr)
                return 1
            for mutant in wanted:
                tried += 1
                if problem := try_mutant(tree, options.jobs, room, *mutant):
                    bad += 1
                    if problem != "survived":
                        print(f"mutation: {mutant[1]}: {problem}", file=sys.stderr)
    print(f"mutation: {bad} of {tried} not noticed, {time.monotonic() - begun:.0f} s")
    return 1 if bad or tried == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
