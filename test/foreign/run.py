#!/usr/bin/python3
"""Other people's programs and test suites: what passes natively must pass under far memory.

    test/foreign/run.py --hinterland build/bin/hinterland [--far URL] [--short] [--keep FOLDER] [PROGRAM ...]

One line a program and device on stdout, at the end a table of passes. Exit status 0: nothing that passes natively
fails; 1: something does; 77: nothing could run; 2: usage.
"""

import argparse
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "programs")]
sys.dont_write_bytecode = True

from harness import endings, suite  # noqa: E402
from harness.errors import Failure, Interrupted, Skip  # noqa: E402
from harness.launcher import Launcher  # noqa: E402

import passes  # noqa: E402
from cases import ALL  # noqa: E402

EXIT_SKIPPED = 77
SHORT, LONG = 0.1, 0.4  # of the work; less of it has smaller peaks and budgets, too


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hinterland", metavar="PATH", help="the command under test")
    parser.add_argument("--far", action="append", metavar="URL", help="far device, several times (default mem: zmem:)")
    parser.add_argument("--local-share", type=float, default=0.25, metavar="SHARE",
                        help="local memory as a share of the native peak (default 0.25)")
    parser.add_argument("--short", action="store_true", help="a quarter of the work, the slowest tests left out")
    parser.add_argument("--scale", type=float, default=LONG, metavar="NUMBER",
                        help=f"of the long form's work (default {LONG:g}: half an hour a device)")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("HINTERLAND_TEST_SEED", "20240229")),
                        help="of the generated data (default HINTERLAND_TEST_SEED)")
    parser.add_argument("--timeout", type=float, default=None, metavar="SECONDS",
                        help="for one run of one program (default 1500, with --short 150)")
    parser.add_argument("--option", action="append", default=[], metavar="WORD",
                        help="further word for `hinterland run`, several times")
    parser.add_argument("--keep", metavar="FOLDER", help="leave each program's folder below this one, to look at")
    parser.add_argument("--list", action="store_true", help="the programs, one a line")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="default: all that are in the chosen form")
    chosen = parser.parse_args()
    for name in chosen.programs:
        if name not in ALL:
            parser.error(f"no program '{name}': there are {', '.join(ALL)}")
    if not chosen.list and not chosen.hinterland:
        parser.error("--hinterland is needed")
    if not 0 < chosen.local_share <= 1.5:
        parser.error("--local-share is a share of the native peak: above 0, at most 1.5")
    return chosen


def say(line):
    print(line, flush=True)


def show_list():
    for name, program in ALL.items():
        forms = [form for form, there in (("short", program.in_short), ("long", program.in_long)) if there]
        say(f"{name:<27} {' and '.join(forms):<14}  {program.help}")


def folder_of(chosen, name):
    """A folder for one program, gone when the `with` ends unless --keep."""
    if not chosen.keep:
        return tempfile.TemporaryDirectory(prefix="hinterland-test-", ignore_cleanup_errors=True)
    return _Kept(os.path.join(os.path.abspath(chosen.keep), name))


class _Kept:
    def __init__(self, path):
        self._path = path

    def __enter__(self):
        os.makedirs(self._path, exist_ok=True)
        return self._path

    def __exit__(self, *_):
        pass


def run_all(chosen, settings):
    rows = []
    names = chosen.programs or [name for name, program in ALL.items()
                                if (program.in_short if chosen.short else program.in_long)]
    for name in names:
        with endings.waiting:
            pass  # a signal that came while no one waited
        with folder_of(chosen, name) as folder:
            program = ALL[name](folder, SHORT if chosen.short else chosen.scale, chosen.seed)
            program.short = chosen.short
            rows.append(passes.run_program(program, settings, say))
    return rows


def main():
    endings.catch()
    chosen = arguments()
    if chosen.list:
        show_list()
        return 0
    try:
        launcher = Launcher(chosen.hinterland)
    except FileNotFoundError as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    settings = suite.Settings(launcher=launcher, urls=tuple(chosen.far or ("mem:", "zmem:")),
                              local_share=chosen.local_share, options=tuple(chosen.option),
                              seconds_max=chosen.timeout or (150 if chosen.short else 1500))
    print(f"seed {chosen.seed}", file=sys.stderr)
    try:
        launcher.check()
        rows = run_all(chosen, settings)
    except Skip as skip:
        say(f"skipped: {skip}")
        return EXIT_SKIPPED
    except Failure as failure:
        say(f"FAILED {failure}")
        return 1
    except Interrupted as signal:
        print(f"run.py: ended by {signal}; everything started is gone", file=sys.stderr)
        return 1
    if len(rows) > 1:
        passes.show_table(rows, settings.urls, say)
    if any(row.failed for row in rows):
        return 1
    if all(row.skipped for row in rows):
        say(f"skipped: {rows[0].skipped}")
        return EXIT_SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
