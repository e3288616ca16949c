#!/usr/bin/python3
"""The programs floor, access and openload, small and short: that they measure what they say, and what they refuse.

    programs_test.py FOLDER     build/bench, where the two are
"""

import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

FOLDER = sys.argv.pop(1) if len(sys.argv) > 1 else "build/bench"
SMALL = ("--size", "2M", "--local", "1M", "--evict-batch", "16", "--primitive-size", "1M", "--seconds", "0.001",
         "--repeat", "2")
# All figures, but of those in which another CPU serves each fault only one of a kind: where there is more work than CPUs,
# every fault waits for its turn there.
FIGURES = ("primitive/", "/hinted/", "/signal/", "/handler-same-cpu/", "/handler-unpinned/", "tcp/",
           "/handler-other-cpu/copy-clean", "/handler-other-cpu-spinning/move-dirty")
ONLY = tuple(word for name in FIGURES for word in ("--only", name))
DEBUG = "debug build"


def run(name, *words):
    done = subprocess.run([os.path.join(FOLDER, name), *words], capture_output=True, text=True, timeout=100,
                          check=False)
    if DEBUG in done.stderr:
        raise unittest.SkipTest("a debug build refuses to measure")
    return done.returncode, done.stdout, done.stderr


class Access(unittest.TestCase):
    def access(self, *words):
        code, out, errors = run("access", *words)
        self.assertEqual(code, 0, errors)
        return json.loads(out)

    def test_every_pattern(self):
        for pattern in ("first-touch", "sequential-read", "sequential-write", "random-read", "random-write",
                        "read-call", "write-call", "temporary"):
            for more in ((), ("--threads", "2", "--malloc", "--pipe", "--piece", "256K")):
                said = self.access(pattern, "--size", "2M", "--content", "zero", *more)
                self.assertEqual((said["pattern"], said["accesses"]), (pattern, 512))
                self.assertGreater(said["seconds"], 0)
                self.assertAlmostEqual(said["ns_per_access"] * 512 / 1e9, said["seconds"], places=6)
                self.assertGreater(said["resident_anonymous_bytes"], 2 << 20)

    def test_the_same_seed_is_the_same_work(self):
        sums = [self.access("random-read", "--size", "2M", "--seed", seed)["checksum"] for seed in ("3", "3", "4")]
        self.assertEqual(sums[0], sums[1])
        self.assertNotEqual(sums[0], sums[2])

    def test_bad_input(self):
        for words in (("nonsense",), (), ("random-read", "--size", "1K"), ("random-read", "--size", "0"),
                      ("random-read", "--threads", "0"), ("read-call", "--piece", "100"),
                      ("random-read", "--threads", "2", "--accesses", "3")):
            code, out, errors = run("access", *words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertTrue(errors)

    def test_a_folder_that_cannot_be_used(self):
        code, _, errors = run("access", "read-call", "--size", "1M", "--folder", "/nowhere")
        self.assertEqual(code, 1)
        self.assertIn("/nowhere", errors)


    def test_hold(self):
        with subprocess.Popen([os.path.join(FOLDER, "access"), "hold", "--size", "2M"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            line = process.stdout.readline()
            if not line and DEBUG in process.stderr.read():
                self.skipTest("a debug build refuses to measure")
            self.assertEqual(json.loads(line), {"program": "access", "pattern": "hold", "filled": True})
            self.assertIsNone(process.poll(), "it holds until standard input ends")
            process.stdin.close()
            self.assertEqual(process.wait(30), 0)
            self.assertEqual((process.stdout.read(), process.stderr.read()), ("", ""))


class FakeRedis(threading.Thread):
    """Answers GET and SET. stall: (after how many GETs, seconds) it answers nobody; lie: a GET gets another's value."""

    def __init__(self, path, stall=None, lie=False, error=None):
        super().__init__(daemon=True)
        self._stall, self._lie, self._error = stall, lie, error
        self._values, self._gets = {}, 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(64)
        self.start()

    def run(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ, None)
            while True:
                for key, _ in selector.select():
                    if key.data is None:
                        link = self._listener.accept()[0]
                        selector.register(link, selectors.EVENT_READ, bytearray())
                    elif not self._serve(key.fileobj, key.data):
                        selector.unregister(key.fileobj)
                        key.fileobj.close()

    def _serve(self, link, held):
        data = link.recv(1 << 20)
        held += data
        while request := self._request(held):
            link.sendall(self._answer(*request))
        return bool(data)

    @staticmethod
    def _request(held):
        """The words of the first whole request, taken out of `held`."""
        count, at, words = held.partition(b"\r\n"), 0, []
        if not count[1]:
            return None
        at = len(count[0]) + 2
        for _ in range(int(count[0][1:])):
            end = held.find(b"\r\n", at)
            if end < 0:
                return None
            length = int(held[at + 1:end])
            if len(held) < end + 2 + length + 2:
                return None
            words.append(bytes(held[end + 2:end + 2 + length]))
            at = end + 2 + length + 2
        del held[:at]
        return words

    def _answer(self, verb, key, value=None):
        if self._error:
            return b"-" + self._error + b"\r\n"
        if verb == b"SET":
            self._values[key] = value
            return b"+OK\r\n"
        self._gets += 1
        if self._stall and self._gets == self._stall[0]:
            time.sleep(self._stall[1])
        value = self._values[b"key:0" if self._lie else key]
        return b"$%d\r\n%s\r\n" % (len(value), value)


class OpenLoad(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "socket")

    def load(self, *words):
        return run("openload", "--socket", self.path, "--keys", "200", "--value", "100", "--rate", "1000", "--seconds",
                   "0.5", "--warm-up", "0.1", "--connections", "4", *words)

    def test_figures(self):
        FakeRedis(self.path)
        code, out, errors = self.load()
        self.assertEqual(code, 0, errors)
        said = json.loads(out)
        self.assertEqual((said["program"], said["keys"]), ("openload", 200))
        self.assertAlmostEqual(said["get"]["count"] + said["set"]["count"], 500, delta=120)
        self.assertLess(said["set"]["count"], said["get"]["count"])
        for of in ("get", "set"):
            self.assertTrue(0 < said[of]["p50_ns"] <= said[of]["p99_ns"] <= said[of]["max_ns"], said)
        again = json.loads(self.load()[1])
        self.assertEqual(again["checksum"], said["checksum"])
        self.assertNotEqual(json.loads(self.load("--seed", "2")[1])["checksum"], said["checksum"])

    def test_a_stall_is_charged_to_all_that_were_due_in_it(self):
        FakeRedis(self.path, stall=(200, 0.2))
        code, out, errors = self.load("--sets", "0")
        self.assertEqual(code, 0, errors)
        said = json.loads(out)
        # About 200 of 500 were due while it stalled, and waited half of it on average; a client that waits for each
        # answer would have sent four of them.
        self.assertGreater(said["get"]["p90_ns"], 80_000_000)
        self.assertGreater(said["get"]["max_ns"], 180_000_000)
        self.assertAlmostEqual(said["get"]["count"], 500, delta=120)

    def test_a_wrong_value_is_a_failure(self):
        FakeRedis(self.path, lie=True)
        code, out, errors = self.load()
        self.assertEqual((code, out), (1, ""))
        self.assertRegex(errors, "reply about key [1-9][0-9]* is not what was stored there")

    def test_an_error_of_the_server_is_a_failure(self):
        FakeRedis(self.path, error=b"OOM command not allowed")
        code, _, errors = self.load()
        self.assertEqual(code, 1)
        self.assertIn("OOM command not allowed", errors)

    def test_bad_input(self):
        for words in (("--rate", "0"), ("--seconds", "x"), ("--sets", "2"), ("--value", "0"), ("--keys", "0"),
                      ("--connections", "0"), ("--nonsense",)):
            code, out, errors = self.load(*words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertTrue(errors)
        code, _, errors = self.load()
        self.assertEqual(code, 1)
        self.assertIn("connecting to", errors)


class AifmDataframe(unittest.TestCase):
    HEADER = ("vendor_id,passenger_count,pickup_datetime,dropoff_datetime,pickup_latitude,pickup_longitude,"
              "dropoff_latitude,dropoff_longitude,store_and_fwd_flag\n")

    def test_the_same_trips_have_the_same_results(self):
        runs = [run("aifm_dataframe", "--rows", rows) for rows in ("3000", "3000", "3001")]
        for code, _, errors in runs:
            self.assertEqual(code, 0, errors)
        documents = [json.loads(out) for _, out, _ in runs]
        self.assertEqual([each["rows"] for each in documents], [3000, 3000, 3001])
        self.assertEqual(documents[0]["digest"], documents[1]["digest"])
        self.assertNotEqual(documents[0]["digest"], documents[2]["digest"])
        self.assertAlmostEqual(sum(documents[0]["steps"].values()), documents[0]["total_s"], places=6)

    def test_a_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write(self.HEADER + "1,2,2016-03-14 17:24:55,2016-03-14 17:32:30,40.76,-73.98,40.77,-73.96,N\n" * 50)
            file.flush()
            code, out, errors = run("aifm_dataframe", "--csv", file.name)
            self.assertEqual(code, 0, errors)
            self.assertEqual(json.loads(out)["rows"], 50)
            file.write("1,2,yesterday,,,,,,\n")
            file.flush()
            code, _, errors = run("aifm_dataframe", "--csv", file.name)
        self.assertEqual(code, 1)
        self.assertIn("line 52, column 'pickup_datetime'", errors)


class Floor(unittest.TestCase):
    def test_everything(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "floor.json")
            code, out, errors = run("floor", *SMALL, *ONLY, "--json", path)
            if "userfaultfd" in errors:
                self.skipTest(errors.strip())
            self.assertEqual(code, 0, errors)
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        names = run("floor", "--list", *ONLY)[1].split()
        self.assertEqual([figure["name"] for figure in document["figures"]], names)
        for figure in document["figures"]:
            self.assertIn(figure["name"], out)
            if "skipped" not in figure:
                self.assertTrue(0 < figure["min"] <= figure["median"] <= figure["max"], figure)
                self.assertGreaterEqual(len(figure["values"]), 2)
        measured = [figure for figure in document["figures"] if "skipped" not in figure]
        self.assertGreater(len(measured), 10)
        self.assertEqual({name.split("/")[0] for name in names}, {"primitive", "paging", "tcp"})

    def test_bad_input(self):
        for words in (("--only", "nonsense"), ("--size", "1M", "--local", "1M"), ("--size", "x"),
                      ("--size", "1000000G"), ("--repeat", "0"), ("--local", "0"), ("--size", "3000K")):
            code, _, errors = run("floor", *words)
            self.assertEqual(code, 2, words)
            self.assertTrue(errors)


if __name__ == "__main__":
    unittest.main()
