"""Reports: the lines that fault are named, with the shares that the program makes; and all the formats."""

import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import unittest

from support import HINTERLAND, PAGES, SUBJECT, TraceTest, marked_lines


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


class Pages(TraceTest):
    def setUp(self):
        super().setUp()
        self.use_shared_trace()
        done = self.call("report", "t.trace", "--html", "t.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("t.html"), encoding="utf-8") as file:
            self.page = file.read()

    def test_needs_nothing_else(self):
        """No address of another file or of the network, and the data is whole."""
        markup = re.sub(r'<script id="data".*?</script>', "", self.page, flags=re.DOTALL)
        self.assertNotRegex(markup, r"https?:|src=|href=|@import|url\(")
        data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', self.page, re.DOTALL).group(1))
        report = self.report("t.trace")
        self.assertEqual(sum(data["faults"]), report["faults"])
        self.assertEqual(sum(cell[3] for cell in data["map"]["cells"]), report["faults"])
        self.assertAlmostEqual(data["tree"][1][1] / report["faults"], data["faults"][1] / report["faults"], delta=0.05)
        fetches = [point[1] for point in data["curve"]]
        self.assertEqual(fetches, sorted(fetches, reverse=True))
        self.assertTrue(any("MARK read" in line[1] for site in data["sites"] for line in site["source"]))

    def test_curve_is_what_replay_says(self):
        """Each point of "what more local memory would save" is the fetches that `replay` foretells for that budget."""
        data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', self.page, re.DOTALL).group(1))
        self.assertEqual(data["replayed"], sum(data["faults"]))
        self.assertGreater(len(data["curve"]), 2)
        for local, fetches in data["curve"]:
            done = self.call("replay", "t.trace", "--local", str(local), "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["runs"][0]["faults_fetch"], fetches, local)

    def test_in_a_browser(self):
        """Drawn without an error; a search, a click that zooms, and a click on a line do what they say."""
        script = """
          const result = {errors: window.errors};
          search('read_pages');
          result.found = document.getElementById('found').textContent;
          const box = canvas.getBoundingClientRect(), read = drawn.find(d => d[3].name.startsWith('read_pages'));
          const at = {clientX: box.left + read[0] + read[2] / 2, clientY: box.top + read[1] + 5, bubbles: true};
          canvas.dispatchEvent(new MouseEvent('mousemove', at));
          result.tip = document.getElementById('tip').textContent;
          canvas.dispatchEvent(new MouseEvent('click', at));
          result.zoomed = zoom.name;
          document.getElementById('reset').click();
          result.reset = zoom.name;
          document.querySelector('#sites tr').click();
          result.source = document.querySelector('#sites pre b').textContent;
          const map = document.getElementById('map');
          const pixels = map.getContext('2d').getImageData(0, 0, map.width, map.height).data;
          result.painted = pixels.some(value => value !== 0);
          document.body.dataset.result = JSON.stringify(result);
        """
        result = self.driven(self.page, script)
        self.assertRegex(result["found"], r"^[67]\d\.\d % of all faults$")
        self.assertIn("read_pages", result["tip"])
        self.assertIn("read_pages", result["zoomed"])
        self.assertIn("all faults", result["reset"])
        self.assertIn("MARK read", result["source"])
        self.assertTrue(result["painted"])


    def colours(self):
        """Of the kinds of faults, as the page has them: (red, green, blue) each."""
        text = re.search(r"const COLOURS = \[([^\]]*)\]", self.page).group(1)
        return [tuple(bytes.fromhex(colour)) for colour in re.findall(r"#(\w{6})", text)]

    def test_colours_for_every_eye(self):
        """First touches, reads, writes and protection faults differ for those who lack one kind of cone, too (Machado,
        Oliveira and Fernandes, "A physiologically-based model for simulation of color vision deficiency", 2009)."""
        full = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
        no_red = ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998))
        no_green = ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))
        no_blue = ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900))
        for eye in (full, no_red, no_green, no_blue):
            seen = [lab([min(max(sum(a * b for a, b in zip(row, linear(colour))), 0), 1) for row in eye])
                    for colour in self.colours()[:4]]
            for i, one in enumerate(seen):
                for other in seen[:i]:
                    distance = sum((a - b) ** 2 for a, b in zip(one, other)) ** 0.5
                    self.assertGreater(distance, 12, (eye, i, seen))  # 2.3 is what is just told apart

    def test_screenshot(self):
        """The kinds that the program has are there to be seen, in the flame graph and in the picture of addresses."""
        seen = self.screenshot(self.page)
        for colour in self.colours()[:3]:  # first touch, read, write
            self.assertGreater(seen.get(colour, 0), 100, colour)

    def test_a_hundred_thousand_stacks(self):
        """Drawn, searched and zoomed by a click; and seen."""
        maker = os.path.join(os.path.dirname(os.path.dirname(HINTERLAND)), "bench", "large_trace")
        if not os.access(maker, os.X_OK):
            self.skipTest("bench/large_trace is not built")
        subprocess.run([maker, self.path("large.trace"), "100000", "100000"], check=True)
        done = self.call("report", "large.trace", "--html", "large.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        page = pathlib.Path(self.path("large.html")).read_text(encoding="utf-8")
        result = self.driven(page, """
          const result = {errors: window.errors, nodes: nodes.length, drawn: drawn.length};
          const box = canvas.getBoundingClientRect(), one = drawn.find(d => d[3].depth === 3 && d[2] > 20);
          canvas.dispatchEvent(new MouseEvent('click', {clientX: box.left + one[0] + one[2] / 2,
            clientY: box.top + one[1] + 5, bubbles: true}));
          result.zoomed = zoom === one[3];
          search('TraceWriter');
          result.found = document.getElementById('found').textContent;
          document.body.dataset.result = JSON.stringify(result);""")
        self.assertGreater(result["nodes"], 100000)
        self.assertGreater(result["drawn"], 100)
        self.assertTrue(result["zoomed"])
        self.assertRegex(result["found"], r"^[1-9][\d.]* % of all faults$")
        self.page = page
        self.assertGreater(self.screenshot(page).get(self.colours()[1], 0), 1000)  # reads


def linear(colour):
    return [(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4) for c in (value / 255 for value in colour)]


def lab(colour):
    """CIELAB of a linear colour."""
    rows = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    x, y, z = (sum(a * b for a, b in zip(row, colour)) / white for row, white in zip(rows, (0.9505, 1, 1.089)))
    x, y, z = (value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116 for value in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


class Replays(TraceTest):
    def test_predicts_real_runs(self):
        """Recorded with a quarter local, the faults at other budgets and policies are foretold within 10 %."""
        plain = ("--read-ahead", "0", "--takeover", "start")
        self.assertEqual(self.trace(SUBJECT, str(PAGES), "2", options=plain).returncode, 0)
        for local, policy in (("16M", "fifo"), ("32M", "second-chance"), ("48M", "fifo"), ("24M", "lru"), ("16M", "priority")):
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
        pathlib.Path(self.path("cut")).write_bytes(whole[:len(whole) * 3 // 4])
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
