"""Advice, from end to end: programs of which nothing but the source is known are traced, patched with what `advise`
says, compiled and run. Nothing is edited by hand."""

import json
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import unittest

from support import FAULTS_RECLAIM, HINTERLAND, TraceTest

PROGRAMS = pathlib.Path(__file__).with_name("programs")
INCLUDE = os.environ["HINTERLAND_TEST_INCLUDE"]
COMPILERS = {".c": "cc", ".cpp": "c++"}


def counters_of(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["totals"]["counters"]


class AdviceTest(TraceTest):
    def setUp(self):
        super().setUp()
        for compiler in COMPILERS.values():
            if shutil.which(compiler) is None:
                self.skipTest(f"there is no {compiler}")

    def compile(self, source, output, *flags, include=f"-I{INCLUDE}"):
        compiler = COMPILERS[pathlib.Path(source).suffix]
        done = subprocess.run([compiler, "-g", "-O2", "-pthread", include, *flags, "-o", output, source],
                              cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def build_and_trace(self, name, local, *arguments, flags=(), options=(), far="mem:"):
        """src/NAME, ./plain built from it, and t.trace of that with every access that misses."""
        os.makedirs(self.path("src"), exist_ok=True)
        shutil.copy(PROGRAMS / name, self.path("src"))
        self.compile(f"src/{name}", "plain", *flags)
        options = ("--read-ahead", "0", "--takeover", "start", *FAULTS_RECLAIM, "--force", *options)
        return self.whole_trace("./plain", *arguments, local=local, options=options, far=far).stdout

    def advise(self, *words):
        done = self.call("advise", "t.trace", *words, "--json")
        if done.returncode != 0:  # what it says of each place, and what the trace was like
            done.stderr += self.call("advise", "t.trace").stdout + self.call("report", "t.trace").stdout
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr

    def run_far(self, program, local, *arguments):
        done = self.call("run", "--local", local, "--far", "mem:", "--takeover", "start", "--report", "run.json",
                         "--force", "--", program, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, counters_of(self.path("run.json"))


class Patched(AdviceTest):
    def follow(self, name, local, *arguments, flags=(), covered=0.95, options=()):
        """Trace, advise, patch, compile, run: the result is the same, and the faults have become hints."""
        self.build_and_trace(name, local, *arguments, flags=flags, options=options)
        report, errors = self.advise("--patch", "hints.patch")
        self.assertIn("which compile", errors)
        command = re.search(r"apply them with: (patch -p1 -d \S+ < hints\.patch)$", errors, re.MULTILINE)
        subprocess.run(command.group(1), shell=True, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        text = pathlib.Path(self.path("hints.patch")).read_text(encoding="utf-8")
        self.assertIn("hinterland/hint.h", text)
        more = re.search(r"then compile as before, with one option more: (-I\S+)$", errors, re.MULTILINE)
        self.compile(f"src/{name}", "advised", *flags, include=more.group(1))
        plain, before = self.run_far("./plain", local, *arguments)
        advised, after = self.run_far("./advised", local, *arguments)
        self.assertEqual(advised, plain)
        self.assertEqual(subprocess.run(["./advised", *arguments], cwd=self.folder, capture_output=True, text=True,
                                        check=True).stdout, plain)
        hinted = after["hint_pages_in"] + after["hint_refaults"] + after["hint_protection_cleared"]
        faults = sum(after[name] for name in ("faults_read", "faults_write", "faults_write_protect",
                                              "faults_refault"))
        self.assertGreater(before["faults_read"] + before["faults_write"], 100, before)
        self.assertGreater(hinted / (hinted + faults), covered, (after, text))
        return report, text

    def test_random_places_of_an_array(self):
        report, text = self.follow("random_array.c", "4M", "4096", "2")
        self.assertRegex(text, r"hl_read\(&table\[keys\[i\]\]\); sum \+= table\[keys\[i\]\]; }")
        self.assertIn("+    hl_write(&table[keys[i]]);\n", text)
        self.assertEqual([place["verdict"] for place in report["places"][:2]], ["hint", "hint"])
        self.assertEqual([place["mut"] for place in report["places"][:2]], [False, True])
        self.assertLess(report["places"][0]["observed"]["sequential_share"], 0.1)
        self.assertLess(report["waiting_advised_s"], report["waiting_s"])

    def test_chains_of_a_hash_table(self):
        """A loop's test, and a bit-field, which has no address."""
        _, text = self.follow("chain.c", "5M", "32768", "10000")
        self.assertIn("hl_at = &it->key", text)
        self.assertIn("{ hl_write(it); it->hits++; }", text)

    def test_columns_in_order(self):
        """In C++17, which is what GCC compiles when it is told nothing: hint.h's own forms."""
        _, text = self.follow("columns.cpp", "4M", "2000000", "1")
        self.assertIn("hl_seq_read(&column[i]);", text)
        self.assertIn("hl_read(&column[index[i]]);", text)

    def test_threads_and_rows(self):
        report, text = self.follow("workers.cpp", "6M", "1024", "1500", "3", flags=("-std=c++20",))
        self.assertIn("hinterland/hint.hpp", text)
        self.assertIn("hl::hint(&values[0], {.size = count * sizeof values[0]});", text)
        self.assertTrue(report["places"][0]["before_loop"])

    def test_a_method_that_returns_a_reference(self):
        """What it hides is hinted where it is called; evaluated once, as before."""
        _, text = self.follow("buckets.cpp", "4M", "4096", "3", flags=("-std=c++20",))
        self.assertIn("hl_at = &bucket(hash); hl::read(hl_at); hl_at; }))", text)

    def test_a_row_before_its_loop(self):
        _, text = self.follow("rows.c", "6M", "1024", "1500")
        self.assertIn("+  hl_hint(&row[0], .size = count * sizeof row[0]);\n", text)

    def test_a_parameter_that_goes_through_the_callers_row(self):
        """The hint stands where the row is known, two calls further out, and not in the function that faults."""
        report, text = self.follow("points.cpp", "6M", "500000", "2", flags=("-std=c++20",))
        self.assertIn("hl::hint(&points[hl_from], {.size = (hl_to - hl_from) * sizeof points[0]});", text)
        self.assertNotIn("&a[", text)
        self.assertTrue(report["places"][0]["before_loop"])

    def test_pieces_of_a_long_row(self):
        """The loop goes round as often as before, though its end moves while it runs."""
        report, text = self.follow("scan.c", "6M", "2500000", "3")
        self.assertIn("hl_hint(&column[hl_from], .size = (hl_to - hl_from) * sizeof column[0]);", text)
        self.assertIn("i < limit && i < hl_to", text)
        self.assertTrue(report["places"][0]["before_loop"])

    def test_a_library_that_goes_on_from_a_pointer(self):
        """The pages of a call are hinted, not only the one that its argument names: pieces begin anywhere on a page."""
        _, text = self.follow("search.c", "6M", "20000000", "3")
        self.assertRegex(text, r"hl_hint\(piece, \.size = \d\d \* 4096\);")

    def test_what_a_system_call_sends(self):
        """An item may lie on two pages, and the call is only given an array that says where."""
        _, text = self.follow("sender.c", "4M", "10000", "20000")
        self.assertIn("hl_hint((parts)[hl_i].iov_base, .size = (parts)[hl_i].iov_len);", text)

    def test_rows_that_choose_what_stays(self):
        """A walk in order is hinted before its loop, with the rows behind it; what it chooses is in a loop, and there."""
        report, text = self.follow("neighbours.cpp", "5M", "4096", "4", flags=("-std=c++20",), options=("--rate", "0"))
        why = " ".join(place["why"] for place in report["places"])
        self.assertIn("seldom misses", why)
        self.assertRegex(text, r"hl_end = row \+ degrees\[vertex\]; hl::hint\(row, \{\.size = .*, \.rdahead = \d+\}\)")
        self.assertNotIn("&values[", text)

    def test_a_page_behind_that_few_want(self):
        """It follows one look-up in ten, at another line: the line of the other nine does not ask for it."""
        report, text = self.follow("items.c", "4M", "2048", "30000")
        self.assertIn("hl_read(&item->key);", text)
        self.assertLess(report["waiting_advised_s"], report["waiting_s"] * 0.9)

    def test_a_page_behind_that_another_line_hints(self):
        """One in four wants it: alone the first line would ask for it, but the other line has a hint of its own."""
        _, text = self.follow("items.c", "4M", "2048", "30000", "4")
        self.assertIn("hl_read(&item->key);", text)
        self.assertIn("hl_read(&item->value[i]);", text)

    def test_what_a_library_goes_on_from_ends_soon(self):
        """Its first page is there already, and the next one is wanted once in ten: as many bytes as it is likely to use."""
        _, text = self.follow("texts.c", "4M", "40000", "30000")
        self.assertIn("hl_hint(record->text, .size = 1024);", text)

    def test_with_compile_commands_from_another_place(self):
        """Sources that were moved, which need an option to compile: out of compile_commands.json."""
        name = "random_array.c"
        self.build_and_trace(name, "4M", "4096", "1")
        os.rename(self.path("src"), self.path("moved"))
        source = self.path(f"moved/{name}")
        text = pathlib.Path(source).read_text(encoding="utf-8")
        pathlib.Path(source).write_text(text.replace("#include <stdint.h>", "#include TYPES"), encoding="utf-8")
        os.utime(source, (1, 1))
        _, errors = self.advise("--source", "moved", "--patch", "a.patch")
        self.assertIn("NOT tried", errors)
        with open(self.path("moved/compile_commands.json"), "w", encoding="utf-8") as file:
            json.dump([{"directory": self.path("moved"), "file": name,
                        "command": f"cc -c '-DTYPES=<stdint.h>' -o x.o {name}"}], file)
        _, errors = self.advise("--source", "moved", "--patch", "b.patch")
        self.assertIn("which compile", errors)
        self.assertIn(f"--- a/{name}", pathlib.Path(self.path("b.patch")).read_text(encoding="utf-8"))


class Budget(AdviceTest):
    def faults_under(self, local):
        """Those that wait: what `--budget` foretells."""
        _, counters = self.run_far("./plain", str(local), "4096", "10")
        return sum(counters[f"faults_{kind}"] for kind in ("read", "write", "refault", "write_protect")), counters

    def test_the_least_that_is_enough(self):
        """Less for more patience, less with hints; and the faults foretold for it are those of a real run."""
        self.build_and_trace("random_array.c", "4M", "4096", "10")

        def plan(slow_down, *native):
            done = self.call("advise", "t.trace", "--budget", "--slow-down", slow_down, "--json", *native)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)
        tight, loose = plan("1.15", "--native", "0.5s"), plan("1.4", "--native", "0.5s")
        least = tight["as_it_is"]["budget_bytes"]
        self.assertLessEqual(loose["as_it_is"]["budget_bytes"], least)
        self.assertLessEqual(tight["with_hints"]["budget_bytes"], least)
        points = tight["as_it_is"]["points"]
        for way in ("faults", "waiting_s", "waiting_share"):
            values = [point[way] for point in points]
            for less, more in zip(values, values[1:]):  # a policy may choose a little worse with a little more memory
                self.assertLess(more, less + values[0] / 30, (way, points))
        enough = min(point["budget_bytes"] for point in points if point["waiting_share"] <= 0.15)
        self.assertTrue(0 <= least - enough < 1 << 20, (least, points))
        # How long it waits, and so which budget is enough, depends on how busy the machine is; faults hardly do.
        for point in (points[0], next(point for point in points if point["budget_bytes"] == enough)):
            faults, counters = self.faults_under(point["budget_bytes"])
            self.assertLess(abs(point["faults"] - faults), points[0]["faults"] / 12, (point, counters, points))

    def test_a_trace_of_waiting_names_no_budget(self):
        """What is left of its time says nothing. Its device is slow, so that it waits however busy the machine is."""
        self.build_and_trace("random_array.c", "4M", "4096", "1", far="sim:latency=500us,inner=mem:")
        done = self.call("advise", "t.trace", "--budget", "--slow-down", "1.15", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        unknown = json.loads(done.stdout)["as_it_is"]
        self.assertIsNone(unknown["budget_bytes"])
        self.assertEqual({point["waiting_share"] for point in unknown["points"]}, {None})
        self.assertLess(unknown["points"][-1]["waiting_s"], unknown["points"][0]["waiting_s"] / 10)
        said = self.call("advise", "t.trace", "--budget").stdout
        self.assertIn("give it with --native", said)
        self.assertNotIn("With --local", said)

    def test_by_signal_each_first_touch_waits(self):
        """There paging begins with the program; else those that local memory has room for cost nothing."""
        for fault in ("message", "signal"):
            self.build_and_trace("random_array.c", "4M", "4096", "1", options=("--fault", fault, "--force"))
            report = self.report("t.trace")
            self.assertEqual(report["faults_by_signal"], fault == "signal")
            self.assertGreater(report["handler_cost_ns"], 0)
            done = self.call("advise", "t.trace", "--budget", "--native", "1ms", "--json")  # with all of it local, too
            self.assertEqual(done.returncode, 0, done.stderr)
            most = max(json.loads(done.stdout)["as_it_is"]["points"], key=lambda point: point["budget_bytes"])
            touched = report["faults_by_kind"]["first touch"]
            self.assertGreater(touched, 1000)
            (self.assertGreater if fault == "signal" else self.assertLess)(most["waiting_s"], touched * 1e-6)

    def test_options_that_contradict(self):
        for words, says in ((("--budget", "--local", "8M"), "contradict"), (("--slow-down", "2"), "--budget"),
                            (("--native", "2s"), "--budget"),
                            (("--budget", "--slow-down", "1"), "above 1"), (("--budget", "--slow-down", "x"), "above 1"),
                            (("--budget", "--patch", "p"), "contradict")):
            done = self.call("advise", "t.trace", *words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(says, done.stderr)


class GoingWrong(AdviceTest):
    def test_no_debug_information(self):
        self.build_and_trace("random_array.c", "4M", "4096", "1", flags=("-g0",))
        report, errors = self.advise()
        self.assertIn("build it with -g", errors)
        self.assertEqual({place["verdict"] for place in report["places"] if place["share"] > 0.01}, {"not found"})
        done = self.call("advise", "t.trace", "--patch", "p.patch")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no hint to write", done.stderr)
        self.assertFalse(os.path.exists(self.path("p.patch")))

    def test_debug_information_without_variables(self):
        self.build_and_trace("random_array.c", "4M", "1500", "1", flags=("-g1",))
        self.assertIn("was built with -g1", self.advise()[1])

    def test_sources_that_are_not_those(self):
        self.build_and_trace("random_array.c", "4M", "4096", "1")
        source = self.path("src/random_array.c")
        text = pathlib.Path(source).read_text(encoding="utf-8")
        os.utime(source, (2_000_000_000, 2_000_000_000))
        self.assertIn("was changed after", self.advise()[1])
        pathlib.Path(source).write_text("int x;\n", encoding="utf-8")
        report, _ = self.advise()
        self.assertIn("no such line", report["places"][0]["why"])
        os.remove(source)
        self.assertIn("--source", self.advise()[1])
        os.makedirs(self.path("elsewhere"))
        pathlib.Path(self.path("elsewhere/random_array.c")).write_text(text, encoding="utf-8")
        report, _ = self.advise("--source", "elsewhere")
        self.assertTrue(report["places"][0]["hints"])

    def test_files_that_are_no_traces(self):
        self.build_and_trace("random_array.c", "4M", "1500", "1")
        whole = pathlib.Path(self.path("t.trace")).read_bytes()
        for name, content, says in (("empty", b"", "is empty"), ("foreign", b"\x7fELF" * 99, "is not a trace"),
                                    ("newer", whole[:8] + struct.pack("<I", 99) + whole[12:], "version")):
            pathlib.Path(self.path(name)).write_bytes(content)
            done = self.call("advise", name)
            self.assertEqual(done.returncode, 1, name)
            self.assertIn(says, done.stderr, name)
        pathlib.Path(self.path("cut")).write_bytes(whole[:len(whole) * 3 // 4])
        done = self.call("advise", "cut")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not complete", done.stderr)
        self.assertEqual(self.call("advise").returncode, 2)
        self.assertEqual(self.call("advise", "t.trace", "more").returncode, 2)

    def test_progress_is_for_terminals(self):
        self.build_and_trace("random_array.c", "4M", "1500", "1")
        ours, theirs = pty.openpty()
        with subprocess.Popen([HINTERLAND, "advise", "t.trace"], cwd=self.folder, env=self.environment, stderr=theirs,
                              stdout=subprocess.DEVNULL) as process:
            os.close(theirs)
            said = b""
            try:
                while block := os.read(ours, 4096):
                    said += block
            except OSError:  # as Linux has it when the other end is closed
                pass
            os.close(ours)
            self.assertEqual(process.wait(), 0, said)
        self.assertIn(b"place 1: random_array.c:", said)
        self.assertNotIn("place 1:", self.call("advise", "t.trace").stderr)

    def test_output_exists(self):
        self.build_and_trace("random_array.c", "4M", "1500", "1")
        pathlib.Path(self.path("p.patch")).write_text("precious", encoding="utf-8")
        done = self.call("advise", "t.trace", "--patch", "p.patch")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--force", done.stderr)
        self.assertEqual(pathlib.Path(self.path("p.patch")).read_text(encoding="utf-8"), "precious")
        done = self.call("advise", "t.trace", "--patch", "-")
        self.assertTrue(done.stdout.startswith("--- a/"), done.stdout)

    def test_read_ahead_hides_accesses(self):
        self.build_and_trace("random_array.c", "4M", "1500", "1")
        done = self.trace("./plain", "1500", "1", local="4M", options=("--force", "--takeover", "start"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("--read-ahead 0", self.advise()[1])


if __name__ == "__main__":
    unittest.main()
