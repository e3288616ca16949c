#!/usr/bin/env python3
"""hinterland check: hints that lose are off, and later runs read that. check.py PLUGIN PRELOADED HINTERLAND

The program has a hint in a loop that never leaves local memory, which makes that loop several times slower; so which one
loses needs no quiet machine."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:  # python3-jsonschema, of scripts/packages
    jsonschema = None

from common import HERE, call, expect, sites_in, skip_without, with_static_hints

PLUGIN, HINTERLAND = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[3])
SOURCE = HERE / "programs" / "hot_and_far.c"
FAR = ["--local", "6M", "--far", "mem:", "--takeover", "start"]
MEASURED = ["200000000", "20000"]  # rounds in the loop, accesses all over
COUNTED = ["2000000", "100000"]


class Checks:
    def __init__(self, folder):
        self.folder = folder
        self.figures = tempfile.TemporaryDirectory(dir="/dev/shm")  # in memory: programs do not wait for a disk
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("HINTERLAND_") and k != "LD_PRELOAD"}
        self.environment.update(HINTERLAND_STAT_DIR=self.figures.name, XDG_CACHE_HOME=folder + "/cache", TMPDIR=folder)

    def command(self, *words, cwd=None):
        return subprocess.run([HINTERLAND, *map(str, words)], env=self.environment, cwd=cwd or self.folder, timeout=500,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def check(self, *words, cwd=None):
        return self.command("check", *FAR, "--pairs", "8", "--clock", "processor", *words, cwd=cwd)

    def refused(self, said, *words):
        done = self.check(*words)
        expect(done.returncode == 1 and said in done.stderr and done.stdout == "", f"{words}: {said!r}: {done}")
        messages = [line for line in done.stderr.splitlines() if "hinterland: " in line and " s" != line[-2:]]
        expect(len(messages) == 2 and messages[1].startswith("hinterland:   "), f"one message and what to do: {messages}")

    def sites_on(self, program, *more):
        """Of a run, from its messages: (on, all)."""
        done = self.command("run", *FAR, "-v", *more, "--", program, "1", "1")
        expect(done.returncode == 0, f"it runs: {done.stderr}")
        return sites_in(done.stderr, program)


def built(folder, name, *options):
    program = f"{folder}/{name}"
    call(["clang-19", "-O2", "-g", *options, SOURCE, "-o", program])
    return program


def lying_profile(checks, program):
    """One by which all sites that are passed would be worth it, the loop's as well."""
    recorded = checks.folder + "/recorded"
    done = checks.command("run", *FAR, "--record-sites", recorded, "--", program, *COUNTED)
    expect(done.returncode == 0, done.stderr)
    lines = pathlib.Path(recorded).read_text().splitlines()
    made = lines[:2] + [f"{number} {passes} {passes}" for number, passes, _ in map(str.split, lines[2:])]
    pathlib.Path(recorded).write_text("\n".join(made) + "\n")
    return recorded


def check_that_a_loser_is_off(checks, program):
    profile = lying_profile(checks, program)
    expect(checks.sites_on(program)[0] == checks.sites_on(program)[1] > 1, "at first all are on")
    done = checks.check(profile, "--json", "--", "./hinted", *MEASURED)
    expect(done.returncode == 0, done.stderr)
    found = json.loads(done.stdout)
    if jsonschema is not None:
        schema = json.loads((HERE.parents[1] / "docs" / "schema" / "check.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft202012Validator(schema).validate(found)
    dropped = [site for group in found["groups"] if group["verdict"] == "dropped" for site in group["sites"]]
    expect("hot" in [site["function"] for site in dropped], f"the loop's hint is dropped: {done.stdout}")
    expect(all(site["file"].endswith("hot_and_far.c") and site["line"] > 0 for site in dropped), f"with its line: {dropped}")
    expect(not found["taken_back"] and found["sites_dropped"] == len(dropped), done.stdout)
    expect([way["name"] for way in found["ways"]] == ["no hints", "the profile's", "the choice"], f"{found['ways']}")
    expect(found["ways"][2]["median_s"] < found["ways"][1]["median_s"], f"quicker by a multiple: {found['ways']}")
    expect(found["written_to"] == program + ".sites", f"beside it: {found['written_to']}")

    lines = pathlib.Path(program + ".sites").read_text().splitlines()
    on = [int(line.split()[0]) for line in lines[3:] if not line.startswith("#")]
    off = [line for line in lines if "dropped: on costs" in line]
    expect(len(on) + len(off) == found["sites_of_the_profile"] and len(off) == len(dropped), f"{lines}")
    expect(sorted(int(line.split()[1]) for line in off) == sorted(site["number"] for site in dropped), f"{off}")
    expect(checks.sites_on(program)[0] == len(on), "a later run reads it")
    pathlib.Path(program + ".sites").unlink()


def check_counting_and_the_cache(checks, program):
    """Without a profile it counts; in a folder that may not be written the choice goes into the cache."""
    output = checks.folder + "/named.sites"
    done = checks.check("-o", output, "--", "./hinted", *COUNTED)
    expect(done.returncode == 0 and "once, counting" in done.stderr, done.stderr)
    expect("hints by" not in done.stdout and "far hot_and_far.c" not in done.stdout, done.stdout)
    for words in ["were passed", "pairs of runs", "hot_and_far.c:", "no hints", f"Written to {output}"]:
        expect(words in done.stdout, f"{words}: {done.stdout}")
    on = sum(not line.startswith(("#", "module", "hinterland")) for line in pathlib.Path(output).read_text().splitlines())
    all_sites = checks.sites_on(program)[1]
    expect(checks.sites_on(program) == (all_sites, all_sites), "a file that is named is read where it is named")
    expect(checks.sites_on(program, "--sites", output)[0] == on, "as here")

    # As check writes it where a folder may not be written (root may write everywhere).
    digest = 0xcbf29ce484222325
    for byte in os.path.realpath(program).encode():
        digest = (digest ^ byte) * 0x100000001b3 % (1 << 64)
    cached = pathlib.Path(checks.folder, "cache", "hinterland", f"hinted-{digest:016x}.sites")
    cached.parent.mkdir(parents=True)
    cached.write_text(pathlib.Path(output).read_text())
    expect(checks.sites_on(program)[0] == on, "the cache's choice is read")
    module = pathlib.Path(output).read_text().splitlines()[2]
    expect(module.startswith("module "), module)
    beside = pathlib.Path(program + ".sites")
    beside.write_text(f"hinterland sites 1\n{module}\n")
    os.utime(cached, (1, 1))
    expect(checks.sites_on(program)[0] == 0, "the newer one counts: beside")
    os.utime(beside, (0, 0))
    expect(checks.sites_on(program)[0] == on, "the newer one counts: in the cache")
    cached.write_text("hinterland sites 1\nmodule 1 11 " + program + "\n")
    expect(checks.sites_on(program)[0] == 0, "one of another build does not hide that of this one")
    beside.unlink()
    expect(checks.sites_on(program) == (all_sites, all_sites), "alone it is of no use")
    cached.unlink()


def check_bad_input(checks, program):
    folder = checks.folder
    good = pathlib.Path(folder, "named.sites").read_text()
    other = built(folder, "other/hinted", f"-fpass-plugin={PLUGIN}", "-O1")
    pathlib.Path(folder, "text").write_text("something\n")
    pathlib.Path(folder, "short").write_text(good + "17\n")
    run = ["--", program, *COUNTED]
    checks.refused("profile of another build of", folder + "/named.sites", "--", other, *COUNTED)
    checks.refused("it is no profile of hints", folder + "/text", *run)
    checks.refused("is none of a profile", folder + "/short", *run)
    checks.refused("cannot be read", folder + "/none", *run)
    checks.refused("has no hints by the compiler", "--", built(folder, "plain"), *COUNTED)
    checks.refused("was compiled with --static-hints", "--", built(folder, "static", *with_static_hints(PLUGIN)), *COUNTED)
    checks.refused("too short to measure", folder + "/named.sites", "--", program, "1", "20000")
    checks.refused("nothing was counted", *run, "exit")
    checks.refused("the program was ended by signal 9", "--", "/bin/sh", "-c", "kill -9 $$")
    pathlib.Path(program + ".sites").write_text("something of the user's\n")
    checks.refused("is no profile of hints and is not written over", folder + "/named.sites", *run)
    pathlib.Path(program + ".sites").unlink()
    for more, said in [(["--takeover", "start"], "no page came from far memory"), ([], "no hint found a page missing")]:
        done = checks.command("check", "--local", "1G", "--far", "mem:", *more, *run)
        expect(done.returncode == 1 and said in done.stderr and "smaller --local" in done.stderr, f"{more}: {done.stderr}")
    for words, said in [([], "no program given"), (["--"], "no program given"), (["a.sites", "--"], "no program given"),
                        (["--report", "r", "--", "true"], "single run"), (["--sites", "s", "--", "true"], "what it finds out"),
                        (["-o", "-", "--", "true"], "is no file"), (["--pairs", "7", "--", "true"], "--pairs")]:
        done = checks.command("check", *words)
        expect(done.returncode == 2 and said in done.stderr, f"{words}: {done}")
    expect(checks.command("check", "--", "/there/is/none").returncode == 127, "a program that is not there")


def main():
    skip_without("clang-19")
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        os.mkdir(folder + "/other")
        checks = Checks(folder)
        doctor = checks.command("doctor")
        if doctor.returncode != 0:
            print("skipped: this machine cannot run programs on far memory: " + doctor.stdout)
            sys.exit(77)
        program = built(folder, "hinted", f"-fpass-plugin={PLUGIN}")
        check_that_a_loser_is_off(checks, program)
        check_counting_and_the_cache(checks, program)
        check_bad_input(checks, program)


if __name__ == "__main__":
    main()
