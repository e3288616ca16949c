#!/usr/bin/python3
"""Runs each test of the siege many times over each device and by signal, and prints a table of passes.

    test/siege/hundred.py [--times 100] [--tests REGEX] [--ways mem,zmem,file,tcp,signal] [--prefix WORD ...]

What a test runs is taken from ctest (build/); only where its far memory is and how faults are delivered are changed. Tests that
bring their devices themselves (limits, servers, stacks) run as they are, in the column "own". The output of the first
failure of each is kept in BUILD/hundred/. Exit status 1 if any failed.
"""

import argparse
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WAYS = ("mem", "zmem", "file", "tcp", "signal")
FAR = {"mem": "mem:", "zmem": "zmem:", "file": "file:@TEMPORARY@/far?size=1G", "signal": "mem:"}
SKIPPED = 77


def listed(build):
    out = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    for test in json.loads(out.stdout)["tests"]:
        if test["name"].startswith("siege.") and "command" in test:
            properties = {each["name"]: each["value"] for each in test["properties"]}
            variables = dict(word.split("=", 1) for word in properties.get("ENVIRONMENT", []))
            yield test["name"], test["command"], variables, properties


class Server:
    """A memory server for the column tcp, which ends with this script."""

    def __init__(self, build):
        self._process = subprocess.Popen([os.path.join(build, "bin", "hinterland"), "serve", "--listen", "127.0.0.1:0",
                                          "--memory", "4G", "--insecure"], stdout=subprocess.PIPE, text=True)
        found = re.search(r"127\.0\.0\.1:(\d+)", self._process.stdout.readline())
        if not found:
            sys.exit("hundred.py: hinterland serve did not start")
        self.url = f"tcp://127.0.0.1:{found[1]}"

    def end(self):
        self._process.terminate()
        self._process.wait()


def environments(tests, ways, tcp_url):
    """Of each way: the variables that it sets."""
    by_signal = next((variables for _, _, variables, _ in tests if "HINTERLAND_FAULT" in variables), {})
    made = {}
    for way in ways:
        made[way] = {"HINTERLAND_TEST_FAR": tcp_url if way == "tcp" else FAR[way]}
        if way == "signal":
            made[way] |= {name: by_signal[name] for name in ("HINTERLAND_FAULT", "HINTERLAND_TEST_BESIDE")}
    return made


def cases(tests, made):
    """(row, column, command, variables, folder) of all that is to be run."""
    for name, command, variables, properties in tests:
        folder = properties.get("WORKING_DIRECTORY", ROOT)
        if not any(word.endswith("preload/compare.py") for word in command):
            yield name, "own", command, variables, folder
        elif not {"HINTERLAND_TEST_FAR", "HINTERLAND_FAULT"} & variables.keys():
            for way, more in made.items():
                yield name, way, command, variables | more, folder


def passes(times, prefix, command, variables, folder, log):
    """How many of the runs passed; None when it cannot be done here."""
    well = 0
    for _ in range(times):
        done = subprocess.run([*prefix, *command], env=os.environ | variables, cwd=folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode == SKIPPED:
            return None
        well += done.returncode == 0
        if done.returncode != 0 and not os.path.exists(log):
            with open(log, "wb") as file:
                file.write(done.stdout)
    return well


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--tests", default=".", metavar="REGEX")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--prefix", action="append", default=[], metavar="WORD", help="before each command")
    chosen = parser.parse_args()
    build, ways = os.path.abspath(chosen.build), chosen.ways.split(",")
    if not set(ways) <= set(WAYS):
        parser.error(f"ways are {', '.join(WAYS)}")
    tests = [test for test in listed(build) if not test[0].endswith("NOT_BUILT")]
    os.makedirs(os.path.join(build, "hundred"), exist_ok=True)
    server = Server(build) if "tcp" in ways else None
    rows, bad = {}, False
    try:
        for name, way, command, variables, folder in cases(tests, environments(tests, ways, server and server.url)):
            if not re.search(chosen.tests, name):
                continue
            log = os.path.join(build, "hundred", f"{name}-{way}.txt")
            if os.path.exists(log):
                os.remove(log)
            well = passes(chosen.times, chosen.prefix, command, variables, folder, log)
            rows.setdefault(name, {})[way] = "skipped" if well is None else f"{well}/{chosen.times}"
            bad |= well is not None and well != chosen.times
            print(f"{name:<40} {way:<7} {rows[name][way]}", flush=True)
    finally:
        if server:
            server.end()
    columns = [*ways, "own"]
    print("\n| test | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for name, row in rows.items():
        print(f"| {name} | " + " | ".join(row.get(way, "") for way in columns) + " |")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
