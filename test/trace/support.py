"""Traces of test/trace/subject.c, and what is known of its faults."""

import collections
import html
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest
import zlib

HINTERLAND = os.environ["HINTERLAND_TEST_COMMAND"]
SUBJECT = os.environ["HINTERLAND_TEST_SUBJECT"]
SOURCE = pathlib.Path(__file__).with_name("subject.c")
PAGES = 16384  # 64 MiB, of which 16 MiB may be local
# Pages leave when faults need room, and not when another thread gets a CPU: what misses is the same on a busy machine.
FAULTS_RECLAIM = ("--without", "background-reclaim,second-reclaimer,write-back-thread")


def marked_lines(source=SOURCE):
    """{"read": 36, ...}: the marked lines of the subject, or of another source."""
    marks = {}
    for number, line in enumerate(source.read_text().splitlines(), 1):
        found = re.search(r"/\* MARK (\w+) \*/", line)
        if found:
            marks[found.group(1)] = number
    return marks


def pixels_of(png):
    """{(red, green, blue): pixels} of a PNG of eight bits a colour, not interlaced."""
    at, packed, counts = 8, b"", collections.Counter()
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            width, height, bits, colour = struct.unpack(">IIBB", png[at + 8:at + 18])
            size = {2: 3, 6: 4}[colour]
            assert bits == 8
        if kind == b"IDAT":
            packed += png[at + 8:at + 8 + length]
        at += 12 + length
    data, before = zlib.decompress(packed), bytearray(width * size)
    for row in range(height):
        begin = row * (width * size + 1)
        line = unfiltered(data[begin], bytearray(data[begin + 1:begin + 1 + width * size]), before, size)
        counts.update(zip(line[0::size], line[1::size], line[2::size]))
        before = line
    return counts


def unfiltered(method, line, before, size):
    """A row of a PNG, whose pixels have `size` bytes, behind the row `before`."""
    if method == 2:
        return bytearray((value + up) & 255 for value, up in zip(line, before))
    for i in range(len(line) if method else 0):
        left, up = line[i - size] if i >= size else 0, before[i]
        if method == 4:
            corner = before[i - size] if i >= size else 0
            to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
            guess = left if to_left <= to_up and to_left <= to_corner else up if to_up <= to_corner else corner
        else:
            guess = left if method == 1 else (left + up) // 2
        line[i] = (line[i] + guess) & 255
    return line


class TraceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if subprocess.run([HINTERLAND, "doctor"], stdout=subprocess.DEVNULL, check=False, timeout=60).returncode != 0:
            raise unittest.SkipTest("this machine cannot run programs on far memory")

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hinterland-trace-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("HINTERLAND_")}
        self.environment.pop("LD_PRELOAD", None)
        # In memory: where a disk is slow, programs and commands would wait for it.
        figures = tempfile.TemporaryDirectory(prefix="figures-of-a-test-", dir="/dev/shm")
        self.addCleanup(figures.cleanup)
        self.figures_folder = os.path.join(figures.name, "stats")
        self.environment["HINTERLAND_STAT_DIR"] = self.figures_folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def call(self, *words, timeout=100, **options):
        return subprocess.run([HINTERLAND, *words], env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=timeout, check=False, cwd=self.folder, **options)

    def trace(self, *words, options=(), output="t.trace", local="16M", far="mem:", **more):
        """`hinterland trace` of a program; options go before the program."""
        return self.call("trace", "--local", local, "--far", far, "-o", output, *options, "--", *words, **more)

    def in_time(self, record, *names):
        """What `record`, which writes these traces, returns once nearly no stack and no fault was lost. Where the
        recorder is kept away (a disk or a processor that is busy), the kernel has no room for many stacks, and shares
        are other ones: so it may try often, but it must once have been there in time."""
        for _ in range(30):
            done = record()
            self.assertEqual(done.returncode, 0, done.stderr)
            self.need_kernel_sampling(done)
            reports = [self.report(name) for name in names]
            if all(report["stacks_lost_stand_for_faults"] < 0.02 * report["faults"] and report["faults_lost"] == 0
                   for report in reports):
                return done
        self.fail(f"the recorder was never there in time: {[report['recorder_away_s'] for report in reports]} s")

    def whole_trace(self, *words, **more):
        """t.trace, once the recorder was there in time. With --force among its options."""
        return self.in_time(lambda: self.trace(*words, **more), "t.trace")

    def files_left(self):
        """Of figures and rings, after all programs have ended."""
        return [name for _, _, names in os.walk(self.figures_folder) for name in names]

    shared = None  # the bytes of one trace that many tests only read

    def use_shared_trace(self):
        """t.trace: two rounds of the subject, a stack with every fault."""
        if TraceTest.shared is None:
            self.whole_trace(SUBJECT, str(PAGES), "2", options=("--rate", "0", "--force"))
            TraceTest.shared = pathlib.Path(self.path("t.trace")).read_bytes()
        pathlib.Path(self.path("t.trace")).write_bytes(TraceTest.shared)

    def report(self, *words):
        done = self.call("report", *words, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def need_kernel_sampling(self, done):
        if "does not let page faults be sampled" in done.stderr:
            self.skipTest("the kernel does not let this user sample page faults (kernel.perf_event_paranoid)")

    def browser(self):
        browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if browser is None:
            self.skipTest("no Chromium is installed")
        return [browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000",
                f"--user-data-dir={self.path('browser')}"]

    def screenshot(self, page, width=900, height=700):
        """{(red, green, blue): pixels} of the page as Chromium draws it."""
        path = pathlib.Path(self.path("shown.html"))
        path.write_text(page, encoding="utf-8")
        subprocess.run([*self.browser(), f"--window-size={width},{height}", f"--screenshot={self.path('shown.png')}",
                        f"file://{path}"], capture_output=True, check=True, timeout=100)
        return pixels_of(pathlib.Path(self.path("shown.png")).read_bytes())

    def driven(self, page, script):
        """What the script left in document.body.dataset.result, as JSON, at the end of the page in headless Chromium.
        `errors` in it, which is window.errors, must be empty."""
        page = page.replace("<body>", "<body><script>window.errors = []; "
                            "addEventListener('error', e => errors.push(e.message));</script>")
        path = pathlib.Path(self.path("driven.html"))
        path.write_text(page.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
        done = subprocess.run([*self.browser(), "--dump-dom", f"file://{path}"], capture_output=True, text=True,
                              check=False, timeout=100)
        found = re.search(r'data-result="([^"]*)"', done.stdout)
        self.assertIsNotNone(found, done.stderr[-2000:])
        result = json.loads(html.unescape(found.group(1)))
        self.assertEqual(result["errors"], [])
        return result
