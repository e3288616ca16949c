#!/usr/bin/python3
"""Runs tests many times where timing is at its worst, and says which of them failed: a test that fails once is wrong.

    test/flaky/run.py [--times 30] [--tests REGEX | --all] [--since COMMIT] [--build build]

Twice: on two CPUs beside four processes that never rest, and tied to one CPU. Without --tests or --all: the tests whose own
files (not the code under test) differ from COMMIT, which is HEAD's parent unless said otherwise; what is not committed
counts. A test's output at its first failure is kept in BUILD/flaky/. Exit status 1 if any failed.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LOAD = 4  # processes, on two CPUs
# A name of a file that is part of a test, and not of what it tests.
OWN = re.compile(r"^(test|bench|examples|demo)/|_(test|fuzz)\.cpp$|/testing/")


class Failure(Exception):
    """A message for the user."""


def output_of(words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"{' '.join(words[:4])}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def changed_files(since):
    tracked = output_of(["git", "-C", ROOT, "diff", "--name-only", since])
    fresh = output_of(["git", "-C", ROOT, "ls-files", "--others", "--exclude-standard"])
    return set(tracked.split()) | set(fresh.split())


class Sources:
    """What a program of the build is made of, as paths in the repository."""

    def __init__(self, build):
        self._build, self._known = build, {}

    def of(self, program):
        if program not in self._known:
            listed = output_of(["ninja", "-C", self._build, "-t", "inputs", os.path.relpath(program, self._build)])
            paths = set()
            for path in listed.splitlines():
                path = os.path.join(self._build, path)
                paths.add(path)
                if path.endswith("_cxx.cxx"):  # several sources that are compiled together
                    with open(path, encoding="utf-8") as file:
                        paths.update(re.findall(r'#include "(.+)"', file.read()))
            self._known[program] = {os.path.relpath(path, ROOT) for path in paths if path.startswith(ROOT)}
        return self._known[program]


def own_files(test, sources, build):
    """The files of a test itself. For one that is run by a folder's Python modules: all of that folder."""
    files = set()
    for word in test.get("command", []):
        if word.startswith(build + os.sep) and os.path.isfile(word):
            files |= {path for path in sources.of(word) if OWN.search(path)}
        elif word.startswith(ROOT + os.sep):
            files.add(os.path.relpath(word, ROOT))
    folder = next((each["value"] for each in test["properties"] if each["name"] == "WORKING_DIRECTORY"), "")
    if "unittest" in test.get("command", []) and folder.startswith(ROOT + os.sep):
        files |= {os.path.relpath(os.path.join(folder, name), ROOT) for name in os.listdir(folder)}
    return files


def chosen(arguments):
    """Numbers of the tests, as ctest counts them."""
    listed = json.loads(output_of(["ctest", "--test-dir", arguments.build, "--show-only=json-v1"]))["tests"]
    if arguments.all:
        return {number: test["name"] for number, test in enumerate(listed, 1)}
    if arguments.tests:
        return {number: test["name"] for number, test in enumerate(listed, 1)
                if re.search(arguments.tests, test["name"])}
    changed, sources = changed_files(arguments.since), Sources(arguments.build)
    return {number: test["name"] for number, test in enumerate(listed, 1)
            if own_files(test, sources, arguments.build) & changed}


class Load:
    """Processes that want the CPUs all the time."""

    def __init__(self, count, cpus):
        self._count, self._cpus = count, cpus

    def __enter__(self):
        busy = ["taskset", "-c", self._cpus, sys.executable, "-c", "while True: pass"]
        self._processes = [subprocess.Popen(busy) for _ in range(self._count)]

    def __exit__(self, *_):
        for process in self._processes:
            process.kill()
            process.wait()


def rounds(name, cpus, load, numbers, arguments):
    """Name -> output of each test that failed."""
    report = os.path.join(arguments.build, "flaky", f"{name}.xml")
    jobs = "2" if "," in cpus else "1"
    words = ["taskset", "-c", cpus, "ctest", "--test-dir", arguments.build, "-j", jobs,
             "-I", "0,0,0," + ",".join(map(str, numbers)), "--repeat", f"until-fail:{arguments.times}",
             "--output-junit", report, "--no-tests=error"]
    with Load(load, cpus):
        subprocess.run(words, check=False)
    failed = {}
    for case in xml.parse(report).iter("testcase"):
        if case.get("status") == "fail":
            failed[case.get("name")] = case.findtext("system-out") or ""
    return failed


def keep(name, failed, build):
    for test, text in failed.items():
        path = os.path.join(build, "flaky", f"{name}-{re.sub('[^A-Za-z0-9_.-]', '_', test)}.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        print(f"    {test}: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=30, metavar="N", help="runs of each test; default: 30")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--tests", metavar="REGEX", help="tests with such names")
    which.add_argument("--all", action="store_true", help="all tests")
    parser.add_argument("--since", default="HEAD~1", metavar="COMMIT", help="tests that changed since; default: HEAD~1")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), metavar="FOLDER")
    arguments = parser.parse_args()
    arguments.build = os.path.abspath(arguments.build)
    try:
        tests = chosen(arguments)
        if not tests:
            print("flaky: no test has changed; --tests REGEX or --all name some")
            return 0
        cpus = sorted(os.sched_getaffinity(0))
        os.makedirs(os.path.join(arguments.build, "flaky"), exist_ok=True)
        places = [("one-cpu", str(cpus[0]), 0)]
        if len(cpus) > 1:
            places.insert(0, ("beside-load", f"{cpus[0]},{cpus[1]}", LOAD))
        found = {name: rounds(name, where, load, tests, arguments) for name, where, load in places}
    except Failure as failure:
        print(f"flaky: {failure}", file=sys.stderr)
        return 2
    print(f"flaky: {len(tests)} tests, {arguments.times} times each")
    for name, failed in found.items():
        print(f"  {name}: {len(failed)} failed")
        keep(name, failed, arguments.build)
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
