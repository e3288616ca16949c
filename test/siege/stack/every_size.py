#!/usr/bin/env python3
"""Measures the stack of every call on stacks of every size, in both fault modes: the long form of siege.stack.

every_size.py --build DIRECTORY [--first KIB] [--last KIB] [--step KIB] [--at-once SIZES]

Runs depth.py for a few sizes at a time, and goes on after a failure. Exit status: 0 fine, 1 not, 77 skipped.
"""
import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = ("alternate", "coroutine", "far-coroutine", "thread")
SKIPPED = 77


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--first", type=int, default=4)
    parser.add_argument("--last", type=int, default=1024)
    parser.add_argument("--step", type=int, default=4)
    parser.add_argument("--at-once", type=int, default=8)
    chosen = parser.parse_args()
    library, signal = (os.path.join(chosen.build, "lib", f"libhinterland-{name}.so") for name in ("preload", "signal"))
    modes = {"by message": {}, "by signal": {"HINTERLAND_FAULT": "signal", "HINTERLAND_TEST_BESIDE": f"after {signal}"}}
    failed = sizes = 0
    for first in range(chosen.first, chosen.last + 1, chosen.step * chosen.at_once):
        last = min(first + chosen.step * (chosen.at_once - 1), chosen.last)
        for mode, variables in modes.items():
            for way in WAYS:
                done = subprocess.run(["/usr/bin/python3", os.path.join(HERE, "depth.py"), library,
                                       os.path.join(chosen.build, "test", "siege", "siege_depth"),
                                       f"--sizes={first}-{last}/{chosen.step}", way], env=os.environ | variables,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
                if done.returncode == SKIPPED:
                    print(done.stdout)
                    return SKIPPED
                failed += done.returncode != 0
                if done.returncode != 0:
                    print(f"{way}, {mode}, {first} to {last} KiB:\n{done.stdout}", flush=True)
        sizes += (last - first) // chosen.step + 1
        print(f"up to {last} KiB: {sizes} sizes, {failed} failures", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
