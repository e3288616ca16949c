#!/usr/bin/python3
"""Real programs under far memory: each one's results must equal those of a native run.

    test/programs/run.py --hinterland build/bin/hinterland [--far URL] [--local-share 0.25] [--quick] [PROGRAM ...]

One line a program and device on stdout. Exit status 0: all well; 1: something failed; 77: nothing could run;
2: usage.
"""

import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from harness import devices, endings, suite  # noqa: E402
from harness.errors import Failure, Interrupted, Skip  # noqa: E402
from harness.launcher import Launcher  # noqa: E402
from workloads import ALL  # noqa: E402

EXIT_SKIPPED = 77
SCALES = {"quick": 0.25, "normal": 1.0, "full": 5.0}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Programs: " + "; ".join(
        f"{name} ({program.help})" for name, program in ALL.items()))
    parser.add_argument("--hinterland", required=True, metavar="PATH", help="the command under test")
    parser.add_argument("--far", action="append", metavar="URL",
                        help="far device, several times; file: and tcp: make their own file and server. "
                             "Default: mem: zmem: file: tcp:")
    parser.add_argument("--local-share", type=float, default=0.25, metavar="SHARE",
                        help="local memory as a share of the native peak (default 0.25)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="size", action="store_const", const="quick", help="small: 20 MiB and more")
    size.add_argument("--full", dest="size", action="store_const", const="full", help="large: 300 to 500 MiB")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("HINTERLAND_TEST_SEED", "20240229")),
                        help="of the generated data (default HINTERLAND_TEST_SEED)")
    parser.add_argument("--timeout", type=float, default=None, metavar="SECONDS",
                        help="for one run of one program (default 120, with --full 600)")
    parser.add_argument("--option", action="append", default=[], metavar="WORD",
                        help="further word for `hinterland run`, several times")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="default: all")
    chosen = parser.parse_args()
    for name in chosen.programs:
        if name not in ALL:
            parser.error(f"no program '{name}': there are {', '.join(ALL)}")
    if not 0 < chosen.local_share <= 1.5:
        parser.error("--local-share is a share of the native peak: above 0, at most 1.5")
    return chosen


def say(line):
    print(line, flush=True)


def run_all(chosen, settings):
    """(how many programs ran, how many runs failed)."""
    ran = failed = 0
    for name in chosen.programs or ALL:
        with endings.waiting:
            pass  # a signal that came while no one waited
        with tempfile.TemporaryDirectory(prefix="hinterland-test-", ignore_cleanup_errors=True) as folder:
            program = ALL[name](folder, SCALES[chosen.size or "normal"], chosen.seed)
            try:
                failed += suite.run_program(program, settings, say)
                ran += 1
            except Skip as skip:
                say(f"{name:<17} skipped  {skip}")
            except Failure as failure:
                failed += 1
                say(f"{name:<10} native FAILED   {failure}")
    return ran, failed


def main():
    endings.catch()
    chosen = arguments()
    try:
        launcher = Launcher(chosen.hinterland)
    except FileNotFoundError as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    settings = suite.Settings(launcher=launcher, urls=tuple(chosen.far or devices.DEFAULT),
                              local_share=chosen.local_share, options=tuple(chosen.option),
                              seconds_max=chosen.timeout or (600 if chosen.size == "full" else 120))
    print(f"seed {chosen.seed}", file=sys.stderr)
    try:
        launcher.check()
        ran, failed = run_all(chosen, settings)
    except Skip as skip:
        say(f"{'all':<17} skipped  {skip}")
        return EXIT_SKIPPED
    except Failure as failure:
        say(f"{'all':<17} FAILED   {failure}")
        return 1
    except Interrupted as signal:
        print(f"run.py: ended by {signal}; everything started is gone", file=sys.stderr)
        return 1
    return 1 if failed else 0 if ran else EXIT_SKIPPED


if __name__ == "__main__":
    sys.exit(main())
