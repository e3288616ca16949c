"""Reports: the lines that fault are named, with the shares that the program makes; and all the formats."""

import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import unittest

from support import PAGES, SUBJECT, TraceTest, marked_lines


class Reports(TraceTest):
    def setUp(self):
        super().setUp()
        self.use_shared_trace()

    def test_lines_and_shares(self):
        """Reads, writes and copies are made 8 : 2 : 1, on pages drawn alike; so are their faults."""
        sites = {site["line"]: site for site in self.report("t.trace")["sites"]
                 if (site["file"] or "").endswith("subject.c")}
        marks = marked_lines()
        read, write, copy = (sites[marks[name]] for name in ("read", "write", "copy"))
        self.assertEqual(read["function"], "read_pages")
        self.assertEqual(write["function"], "write_pages")
        self.assertGreater(read["faults_by_kind"]["read"], 0.8 * read["faults"])
        self.assertAlmostEqual(write["faults"] / read["faults"], 1 / 4, delta=0.1)
        self.assertAlmostEqual(copy["faults"] / read["faults"], 1 / 8, delta=0.05)
        self.assertIn(marks["fill"], sites)

    def test_library_faults_are_their_callers(self):
        site = next(site for site in self.report("t.trace")["sites"] if site["line"] == marked_lines()["copy"])
        self.assertEqual(site["function"], "copy_one")  # inlined into copy_pages
        self.assertTrue(any("mem" in name for name in site["in_library_functions"]), site)

    def test_stacks_are_complete(self):
        report = self.report("t.trace")
        self.assertGreater(report["stacks_complete_share"], 0.95)
        text = self.call("report", "t.trace", "--folded", "-").stdout
        lines = [line.rsplit(" ", 1) for line in text.splitlines()]
        whole = sum(int(count) for stack, count in lines if ";main;" in ";" + stack and "read_pages" in stack)
        reads = sum(int(count) for stack, count in lines if "read_pages" in stack)
        self.assertGreater(whole, 0.95 * reads)

    def test_coverage_counts(self):
        report = self.report("t.trace", "--top", "1000")
        total = sum(site["faults"] for site in report["sites"])
        for percent, count in report["places_covering_percent"].items():
            faults = [site["faults"] for site in report["sites"]]
            self.assertGreaterEqual(sum(faults[:count]), total * int(percent) / 100 - 1)
            self.assertLess(sum(faults[:count - 1]), total * int(percent) / 100)

    def test_threads(self):
        self.trace(SUBJECT, str(PAGES), "2", "4", output="threads.trace", options=("--takeover", "start"))
        report = self.report("threads.trace", "--by", "thread")
        self.assertEqual(len(report["sites"]), 4)

    def test_text(self):
        text = self.call("report", "t.trace", "--top", "3").stdout
        self.assertIn("lines that cover 50 %: 1", text)
        self.assertIn(f"subject.c:{marked_lines()['read']} read_pages", text)
        self.assertRegex(text, r"tracing took about [\d.]+ % of the program's time")

    def test_speedscope(self):
        self.assertEqual(self.call("report", "t.trace", "--speedscope", "s.json").returncode, 0)
        with open(self.path("s.json"), encoding="utf-8") as file:
            data = json.load(file)
        profile = data["profiles"][0]
        self.assertEqual(len(profile["samples"]), len(profile["weights"]))
        self.assertEqual(sum(profile["weights"]), profile["endValue"])
        frames = data["shared"]["frames"]
        self.assertTrue(all(0 <= index < len(frames) for sample in profile["samples"] for index in sample))
        self.assertTrue(any(frame["name"] == "read_pages" for frame in frames))

    def test_pprof(self):
        """Read back field by field, as any reader of protocol buffers does."""
        self.assertEqual(self.call("report", "t.trace", "--pprof", "p.pb").returncode, 0)
        with open(self.path("p.pb"), "rb") as file:
            fields = list(protobuf(file.read()))
        strings = [value.decode() for field, value in fields if field == 6]
        self.assertEqual(strings[0], "")
        self.assertIn("read_pages", strings)
        locations = {dict(protobuf(value))[1] for field, value in fields if field == 4}
        total = 0
        for field, value in fields:
            if field != 2:
                continue
            sample = list(protobuf(value))
            self.assertTrue(all(number in locations for key, number in sample if key == 1))
            total += sum(number for key, number in sample if key == 2)
        report = self.report("t.trace", "--top", "100000")
        self.assertAlmostEqual(total / sum(site["faults"] for site in report["sites"]), 1, delta=0.01)  # rounded a stack

    def test_diff(self):
        self.trace(SUBJECT, str(PAGES), "1", output="less.trace")
        done = self.call("report", "less.trace", "--diff", "t.trace")
        self.assertEqual(done.returncode, 0, done.stderr)
        first = done.stdout.splitlines()[2]
        self.assertIn("read_pages", first)
        self.assertLess(float(first.split()[2]), 0)

    def test_output_exists(self):
        open(self.path("s.json"), "w", encoding="utf-8").close()
        done = self.call("report", "t.trace", "--speedscope", "s.json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--force", done.stderr)
        self.assertEqual(self.call("report", "t.trace", "--speedscope", "s.json", "--force").returncode, 0)


class Replays(TraceTest):
    def test_predicts_real_runs(self):
        """Recorded with a quarter local, the faults at other budgets and policies are foretold within 10 %."""
        plain = ("--read-ahead", "0", "--takeover", "start")
        self.assertEqual(self.trace(SUBJECT, str(PAGES), "2", options=plain).returncode, 0)
        for local, policy in (("16M", "fifo"), ("32M", "second-chance"), ("32M", "learner"), ("48M", "fifo"), ("24M", "lru"), ("16M", "priority")):
            done = self.call("replay", "t.trace", "--local", local, "--policy", policy, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            predicted = json.loads(done.stdout)["runs"][0]
            done = self.call("run", "--local", local, "--far", "mem:", "--policy", policy, *plain, "--report", "r.json",
                             "--force", "--", SUBJECT, str(PAGES), "2")
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(self.path("r.json"), encoding="utf-8") as file:
                counters = json.load(file)["totals"]["counters"]
            real = sum(counters[name] for name in ("faults_first_touch", "faults_read", "faults_write",
                                                   "faults_refault"))
            self.assertAlmostEqual(predicted["faults"] / real, 1, delta=0.1, msg=(local, policy, predicted, counters))
            self.assertAlmostEqual(predicted["faults_fetch"] / (counters["faults_read"] + counters["faults_write"]), 1,
                                   delta=0.15, msg=(local, policy))

    def test_more_memory_fewer_faults(self):
        self.trace(SUBJECT, str(PAGES), "2", options=("--read-ahead", "0", "--takeover", "start"))
        done = self.call("replay", "t.trace", "--sweep", "--json")
        runs = [run for run in json.loads(done.stdout)["runs"] if run["policy"] == "fifo"]
        faults = [run["faults"] for run in runs]
        self.assertEqual(faults, sorted(faults, reverse=True))
        self.assertEqual(runs[-1]["faults_fetch"], 0)
        self.assertAlmostEqual(runs[-1]["faults"], PAGES, delta=PAGES / 50)

    def test_says_what_it_cannot_know(self):
        self.trace(SUBJECT, str(PAGES), "1")
        done = self.call("replay", "t.trace", "--local", "8M", "--read-ahead", "0")
        self.assertEqual(done.returncode, 0)
        self.assertIn("less is not predicted", done.stderr)
        self.assertIn("--read-ahead 0", done.stderr)
        self.assertEqual(self.call("replay", "/bin/ls").returncode, 1)
        self.assertEqual(self.call("replay").returncode, 2)


class OtherBuilds(TraceTest):
    def top_function(self, variant):
        done = self.trace(os.path.join(os.path.dirname(SUBJECT), variant), str(PAGES), "2", output="v.trace")
        self.need_kernel_sampling(done)
        done = self.call("report", "v.trace", "--json")
        return json.loads(done.stdout), done.stderr

    def test_without_line_information(self):
        report, errors = self.top_function("subject-symbols")
        self.assertEqual(report["sites"][0]["function"], "read_pages")
        self.assertIn("no line information", errors)
        self.assertIn("-dbgsym", errors)

    def test_stripped(self):
        report, errors = self.top_function("subject-stripped")
        self.assertRegex(report["sites"][0]["function"], r"subject-stripped\+0x[0-9a-f]+")
        self.assertIn("is stripped", errors)

    def test_another_file_by_now(self):
        copy = self.path("program")
        shutil.copy(SUBJECT, copy)
        self.need_kernel_sampling(self.trace(copy, str(PAGES), "1"))
        shutil.copy(os.path.join(os.path.dirname(SUBJECT), "subject-symbols"), copy)
        done = self.call("report", "t.trace")
        self.assertEqual(done.returncode, 0)
        self.assertIn("is not the file that ran", done.stderr)
        self.assertNotIn("read_pages", done.stdout)

    def test_on_another_machine(self):
        """Without the program: lines out of its debug file, or out of the program, in a folder that is named."""
        copy = self.path("program")
        shutil.copy(SUBJECT, copy)
        self.need_kernel_sampling(self.trace(copy, str(PAGES), "1"))
        wanted = f"subject.c:{marked_lines()['read']} read_pages"
        os.remove(copy)
        done = self.call("report", "t.trace")
        self.assertIn("--debug-files FOLDER", done.stderr)
        self.assertNotIn(wanted, done.stdout)
        build_id = re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", SUBJECT], capture_output=True,
                                                                text=True, check=True).stdout).group(1)
        for folder, name in (("whole", "program"), ("separate", "program.debug"),
                             ("installed", f".build-id/{build_id[:2]}/{build_id[2:]}.debug")):
            path = pathlib.Path(self.path(folder), name)
            path.parent.mkdir(parents=True)
            words = ["cp"] if folder == "whole" else ["objcopy", "--only-keep-debug"]
            subprocess.run([*words, SUBJECT, str(path)], check=True)
            done = self.call("report", "t.trace", "--debug-files", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(wanted, done.stdout, folder)
        shutil.copy(os.path.join(os.path.dirname(SUBJECT), "subject-symbols"), self.path("whole/program"))
        done = self.call("report", "t.trace", "--debug-files", "whole")  # of another build
        self.assertNotIn("read_pages", done.stdout)

    def test_bad_traces(self):
        with open(self.path("empty"), "wb"):
            pass
        self.assertEqual(self.trace(SUBJECT, str(PAGES), "1").returncode, 0)
        whole = pathlib.Path(self.path("t.trace")).read_bytes()
        pathlib.Path(self.path("newer")).write_bytes(whole[:8] + struct.pack("<I", 99) + whole[12:])
        pathlib.Path(self.path("cut")).write_bytes(whole[:-20])
        done = self.call("report", "cut")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no complete record", done.stderr)
        self.assertRegex(done.stdout, r"\n[1-9]\d+ faults in ")
        cases = {"newer": "version", "empty": "is empty", "/bin/ls": "is not a trace", "absent": "cannot be read", ".": ""}
        for name, says in cases.items():
            done = self.call("report", name)
            self.assertEqual(done.returncode, 1, name)
            self.assertIn(says, done.stderr)
        self.assertEqual(self.call("report", "a", "b", "--html", "c.html").returncode, 2)
        self.assertEqual(self.call("report").returncode, 2)


def protobuf(data):
    """(field, number or bytes) for each field of a message."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
        else:
            length = number()
            yield key >> 3, data[at:at + length]
            at += length


if __name__ == "__main__":
    unittest.main()
