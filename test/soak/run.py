#!/usr/bin/python3
"""The long tests one after the other, with progress and an estimate of the time left.

    test/soak/run.py [--list] [--only PATTERN] [--minutes N] [--build build]

What each job prints is in build/soak/NAME.log. Exit status 0: all well; 1: something failed; 77: nothing could run;
2: usage.
"""

import argparse
import dataclasses
import fnmatch
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "programs")]
sys.dont_write_bytecode = True

from harness import endings  # noqa: E402
from harness.errors import Failure, Interrupted  # noqa: E402
from harness.process import Process  # noqa: E402

import jobs  # noqa: E402

EXIT_SKIPPED = 77
REPORT_SECONDS = 300  # between two words of progress where no terminal is
LATE_SECONDS = 1800  # over what it should take: then a job hangs


def arguments(table):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="the jobs, their minutes, what they do")
    parser.add_argument("--only", action="append", metavar="PATTERN",
                        help="jobs with such names (churn-*), several times")
    parser.add_argument("--minutes", type=float, metavar="N", help="for each job that runs as long as it is told")
    parser.add_argument("--build", default=os.path.join(jobs.ROOT, "build"), metavar="FOLDER", help="default: build")
    chosen = parser.parse_args()
    if chosen.minutes is not None and not 0 < chosen.minutes <= 7 * 24 * 60:
        parser.error("--minutes is above 0, and at most a week")
    for pattern in chosen.only or []:
        if not fnmatch.filter((job.name for job in table), pattern):
            parser.error(f"no job '{pattern}': there are {', '.join(job.name for job in table)}")
    return chosen


def say(line):
    print(line, flush=True)


def span(seconds):
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


class Progress:
    """How long each job should take, and words about what is left."""

    def __init__(self, chosen_jobs, folder):
        self._file = os.path.join(folder, "durations.json")
        try:
            with open(self._file, encoding="utf-8") as file:
                self._known = json.load(file)
        except (OSError, ValueError):
            self._known = {}
        self._left = {job.name: self.expected(job) for job in chosen_jobs}

    def expected(self, job):
        """Seconds. What cannot be told takes as long as it did last time."""
        return job.minutes * 60 if job.timed else self._known.get(job.name, job.minutes * 60)

    def left(self, job, ran_seconds):
        return sum(self._left.values()) - min(ran_seconds, self._left[job.name])

    def done(self, job, seconds, well):
        del self._left[job.name]
        if well and not job.timed:
            self._known[job.name] = seconds
            with open(self._file, "w", encoding="utf-8") as file:
                json.dump(self._known, file)

    def words(self, job, ran_seconds):
        left = self.left(job, ran_seconds)
        until = time.strftime("%H:%M", time.localtime(time.time() + left))
        return f"{span(ran_seconds)} of about {span(self.expected(job))}; all done in about {span(left)}, at {until}"


def last_words(path):
    with open(path, "rb") as file:
        lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1][:160] if lines else "it said nothing"


def wait(process, job, progress, head):
    """Its exit status. Says meanwhile how far it is."""
    terminal = sys.stdout.isatty()
    said = time.monotonic()
    while process.running():
        with endings.waiting:
            time.sleep(min(1, 0.05 + process.seconds / 20))
        if process.seconds > progress.expected(job) * 3 + LATE_SECONDS:
            raise Failure(f"still running after {span(process.seconds)}")
        if terminal:
            print(f"\r\033[K{head} {progress.words(job, process.seconds)}", end="", flush=True)
        elif time.monotonic() - said > REPORT_SECONDS:
            said = time.monotonic()
            say(f"{head} {progress.words(job, process.seconds)}")
    if terminal:
        print("\r\033[K", end="")
    return process.wait(0)


def run_job(job, head, chosen, folder, progress):
    """'ok', 'skipped' or 'FAILED'."""
    context = jobs.Context(os.path.abspath(chosen.build), job.minutes)
    log = os.path.join(folder, job.name + ".log")
    seconds, code, why = 0, None, ""
    try:
        with open(log, "wb") as out, Process(job.command(context), stdout=out, stderr=out, sample=False) as process:
            try:
                code = wait(process, job, progress, head)
            except Failure as failure:
                why = str(failure)
            seconds = process.seconds
    except OSError as error:
        why = f"it cannot be started: {error}"
    verdict = {0: "ok", EXIT_SKIPPED: "skipped"}.get(code, "FAILED")
    progress.done(job, seconds, verdict == "ok")
    say(f"{head} {verdict:<8} after {span(seconds)}: {why or last_words(log)}")
    if verdict == "FAILED":
        say(f"{'':{len(head)}} see {os.path.relpath(log)}")
    return verdict


def run_all(chosen, table):
    selected = [job for job in table if not chosen.only or any(fnmatch.fnmatch(job.name, p) for p in chosen.only)]
    if chosen.minutes is not None:
        selected = [dataclasses.replace(job, minutes=chosen.minutes) if job.timed else job for job in selected]
    folder = os.path.join(chosen.build, "soak")
    os.makedirs(folder, exist_ok=True)
    progress = Progress(selected, folder)
    verdicts = {}
    for number, job in enumerate(selected, 1):
        head = f"[{number}/{len(selected)}] {job.name:<18}"
        say(f"{head} begins: {job.help}; {progress.words(job, 0)}")
        verdicts[job.name] = run_job(job, head, chosen, folder, progress)
    return verdicts


def main(table=jobs.JOBS):
    endings.catch()
    chosen = arguments(table)
    if chosen.list:
        for job in table:
            say(f"{job.name:<18} {job.minutes:>5g} min{' ' if job.timed else '~'} {job.help}")
        return 0
    if not os.path.exists(os.path.join(chosen.build, "bin", "hinterland")):
        print(f"soak: no command below {chosen.build}: build it first (make)", file=sys.stderr)
        return 2
    try:
        verdicts = run_all(chosen, table)
    except Interrupted as signal:
        say(f"soak: ended by {signal}; everything started is gone")
        return 1
    failed = [name for name, verdict in verdicts.items() if verdict == "FAILED"]
    skipped = [name for name, verdict in verdicts.items() if verdict == "skipped"]
    say(f"{len(verdicts) - len(failed) - len(skipped)} well, {len(failed)} failed{': ' if failed else ''}"
        f"{', '.join(failed)}, {len(skipped)} skipped")
    return 1 if failed else EXIT_SKIPPED if len(skipped) == len(verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
