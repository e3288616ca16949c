#!/usr/bin/env python3
"""The compiler's hints in traces: report says which stand where, and a trace makes a profile. traced.py PLUGIN PRELOADED
HINTERLAND"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from common import HERE, call, expect, sites_in, skip_without

PLUGIN, HINTERLAND = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[3])
FAR = ["--local", "6M", "--far", "mem:", "--takeover", "start"]
SOURCE = HERE / "programs" / "hot_and_far.c"
ARGUMENTS = ["1000", "60000"]


class Traces:
    def __init__(self, folder):
        self.folder = folder
        self.figures = tempfile.TemporaryDirectory(dir="/dev/shm")  # in memory: programs do not wait for a disk
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("HINTERLAND_") and k != "LD_PRELOAD"}
        self.environment.update(HINTERLAND_STAT_DIR=self.figures.name, XDG_CACHE_HOME=folder + "/cache", TMPDIR=folder)

    def call(self, *words):
        return subprocess.run([HINTERLAND, *map(str, words)], env=self.environment, cwd=self.folder, timeout=200,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def good(self, *words):
        done = self.call(*words)
        expect(done.returncode == 0, f"{words}: {done.stderr}")
        return done

    def refused(self, said, *words):
        done = self.call(*words)
        messages = [line for line in done.stderr.splitlines() if "warning:" not in line]
        expect(done.returncode == 1 and done.stdout == "" and len(messages) == 2 and said in messages[0],
               f"{words}: one message, {said!r}, and what to do: {done}")

    def built(self, name, *options):
        call(["clang-19", "-O2", "-g", *options, SOURCE, "-o", f"{self.folder}/{name}"])
        return f"{self.folder}/{name}"

    def trace(self, program, *options):
        """One in which the recorder had its CPU: where it has not, the kernel has no room for many stacks."""
        path = f"{program}.trace"
        for _ in range(30):
            done = self.good("trace", *FAR, "--read-ahead", "0", "--rate", "0", "--force", "-o", path, *options, "--", program,
                             *ARGUMENTS)
            if "does not let page faults be sampled" in done.stderr:
                print("skipped: the kernel does not let this user sample page faults (kernel.perf_event_paranoid)")
                sys.exit(77)
            report = json.loads(self.good("report", path, "--json").stdout)
            if report["stacks_lost"] < 0.02 * report["faults"]:
                return path
        sys.exit(f"failed: the recorder never had a CPU in time: {report['recorder_away_s']} s")


def line_of(text):
    """The number of the source's line with that text."""
    return next(i for i, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line)


def sites_of(profile):
    lines = profile.splitlines()
    expect(lines[0] == "hinterland sites 1" and lines[2].startswith("module "), f"a profile: {lines[:3]}")
    return {int(line.split()[0]): int(line.split()[2]) for line in lines[3:]}


def check_report(traces, trace):
    """All comes as faults, and beside their lines stands which hint is there."""
    found = json.loads(traces.good("report", trace, "--json").stdout)
    hints = {site["line"]: site["compiler_hints"] for site in found["sites"] if (site["file"] or "").endswith(SOURCE.name)}
    expect(line_of("numbers[(at >> 20)") in hints, f"look-ups: {json.dumps(found)[:4000]}")
    far = hints[line_of("numbers[(at >> 20)")]
    expect(far and all(hint["how"] == "before the access" for hint in far), f"look-ups: {hints}")
    filled = hints[line_of("numbers[i] = i")]
    expect([(hint["writes"], hint["how"]) for hint in filled] == [(True, "in strips of 64 pages")], f"the loop: {hints}")
    text = traces.good("report", trace).stdout
    expect(re.search(r"hot_and_far\.c:\d+ far  \[hints? [\d, ]+ before the access", text), text)
    expect(re.search(r"hot_and_far\.c:\d+ main  \[hint \d+ in strips of 64 pages\]", text), text)
    by_function = traces.good("report", trace, "--by", "function").stdout
    expect(re.search(r" far  \[hints? [\d, ]+ before the access", by_function), by_function)
    expect("[hint" not in traces.good("report", trace, "--by", "thread").stdout, "threads have none")
    return {hint["number"] for hint in far}, filled[0]["number"]


def check_profile(traces, program, trace, far, filled):
    printed = traces.good("report", trace, "--hint-profile", "-").stdout
    counted = sites_of(printed)
    expect(far <= set(counted) and all(counted[number] > 1000 for number in far), f"{counted}")
    expect(filled not in counted, f"no hint spares first touches: {counted}")
    written = traces.folder + "/made.sites"
    traces.good("report", trace, "--hint-profile", written)
    expect(pathlib.Path(written).read_text() == printed, "the same in a file")
    for sites in [written, trace, os.path.relpath(trace, traces.folder)]:
        done = traces.good("run", *FAR, "-v", "--sites", sites, "--", program, *ARGUMENTS)
        on, of = sites_in(done.stderr, program)
        expect(on == len(counted) < of, f"{sites}: {on} of {of} are on, and {len(counted)} were missing pages")
    # Hints that were followed count as their faults would have.
    followed = traces.trace(program)
    again = sites_of(traces.good("report", followed, "--hint-profile", "-").stdout)
    expect(far <= set(again), f"with hints on: {again}")
    # check takes it as well: here the run is too short, which it says after it has read the trace.
    done = traces.call("check", *FAR, "--clock", "processor", trace, "--", program, "1", "300")
    expect(done.returncode == 1 and "too short to measure" in done.stderr, f"{done}")


def check_bad_input(traces, program, trace):
    plain = traces.built("plain")
    of_plain = traces.trace(plain)
    said = "has no hints by the compiler"
    traces.refused(said, "report", of_plain, "--hint-profile", "-")
    traces.refused(said, "run", *FAR, "--sites", of_plain, "--", program, *ARGUMENTS)
    traces.refused(said, "check", *FAR, of_plain, "--", program, *ARGUMENTS)
    expect("[" not in re.sub(r"\[-", "", traces.good("report", of_plain).stdout.split("place\n")[1]), "nothing beside its lines")
    os.rename(program, program + ".before")
    traces.built("hinted", f"-fpass-plugin={PLUGIN}", "-O1")
    traces.refused("another build of", "report", trace, "--hint-profile", "-")
    traces.refused("another build of", "run", *FAR, "--sites", trace, "--", program, *ARGUMENTS)


def main():
    skip_without("clang-19")
    with tempfile.TemporaryDirectory() as folder:
        traces = Traces(os.path.realpath(folder))
        doctor = traces.call("doctor")
        if doctor.returncode != 0:
            print("skipped: this machine cannot run programs on far memory: " + doctor.stdout)
            sys.exit(77)
        program = traces.built("hinted", f"-fpass-plugin={PLUGIN}")
        trace = traces.trace(program, "--hints", "note")
        far, filled = check_report(traces, trace)
        check_profile(traces, program, trace, far, filled)
        check_bad_input(traces, program, trace)


if __name__ == "__main__":
    main()
