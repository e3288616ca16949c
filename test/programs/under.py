#!/usr/bin/python3
"""Runs one command under far memory, with a server of our own for tcp: and a file for file:.

    test/programs/under.py --hinterland build/bin/hinterland --far tcp: --local 16M -- PROGRAM ARGS...

Checks its exit status, its resident memory and the report. Exit status 0: well; 1: not; 77: not possible here;
2: usage.
"""

import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from harness import devices, endings, report, suite  # noqa: E402
from harness.errors import Failure, Interrupted, Skip  # noqa: E402
from harness.launcher import Launcher  # noqa: E402
from harness.process import Process  # noqa: E402
from harness.units import mib, parse_size  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hinterland", required=True, metavar="PATH", help="the command under test")
    parser.add_argument("--far", required=True, metavar="URL")
    parser.add_argument("--local", required=True, type=parse_size, metavar="SIZE")
    parser.add_argument("--space", type=parse_size, default=parse_size("1G"), metavar="SIZE",
                        help="of the far device that is made for file: and tcp: (default 1G)")
    parser.add_argument("--timeout", type=float, default=120, metavar="SECONDS")
    parser.add_argument("--option", action="append", default=[], help="further word for `hinterland run`")
    parser.add_argument("command", nargs="+", metavar="PROGRAM ARGS...")
    return parser.parse_args()


def run(chosen, launcher, folder):
    path = os.path.join(folder, "report.json")
    with devices.opened(chosen.far, launcher, folder, chosen.space) as url:
        before = launcher.run(local_bytes=chosen.local, url=url, report=path, options=chosen.option)
        with Process([*before, *chosen.command], stdout=None, stderr=None) as process:
            code = process.wait(chosen.timeout)
            name, peak = process.sampler.hog()
    if code != 0:
        raise Failure(f"exit status {code}")
    figures = report.read(path)
    suite.check_report(figures)
    allowed = suite.most_resident(chosen.local, chosen.space, figures)
    if peak > allowed:
        raise Failure(f"{name} had {mib(peak)} resident, {mib(allowed)} is the most")
    return f"{mib(peak)} resident, {figures['pages_in']} pages in, {figures['pages_out']} out"


def main():
    endings.catch()
    chosen = arguments()
    try:
        launcher = Launcher(chosen.hinterland)
        launcher.check()
        with tempfile.TemporaryDirectory(prefix="hinterland-test-", ignore_cleanup_errors=True) as folder:
            words = run(chosen, launcher, folder)
    except FileNotFoundError as error:
        print(f"under.py: {error}", file=sys.stderr)
        return 2
    except Skip as skip:
        print(f"{chosen.far} skipped  {skip}")
        return 77
    except Failure as failure:
        print(f"{chosen.far} FAILED   {failure}")
        return 1
    except Interrupted as signal:
        print(f"under.py: ended by {signal}", file=sys.stderr)
        return 1
    print(f"{chosen.far} ok       {words}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
