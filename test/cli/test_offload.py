"""`hinterland serve` computes for a program under `hinterland run`: the results, and where they came from."""

import json
import os
import subprocess
import unittest

from command import HINTERLAND, CommandTest

EXAMPLE = os.path.join(os.path.dirname(HINTERLAND), "..", "examples", "offload")


class Offload(CommandTest):
    def setUp(self):
        super().setUp()
        self.need_library()
        if not os.path.exists(EXAMPLE):
            self.skipTest("the example is not built")

    def server(self, *options):
        """The URL of a server that ends with the test."""
        words = [HINTERLAND, "serve", "--listen", "127.0.0.1:0", "--memory", "256M", *options]
        process = subprocess.Popen(words, env=self.environment, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.terminate)
        return "tcp://" + process.stdout.readline().split()[2].rstrip(",")

    def counters(self, far, *options):
        """What the report counts, after the results were found to be those of a native run."""
        native = subprocess.run([EXAMPLE, "48"], env=self.environment, capture_output=True, text=True, check=True)
        report = self.path("report.json")
        done = self.call("run", "--local", "16M", "--far", far, "--report", report, "--force", *options, "--", EXAMPLE, "48")
        self.assertEqual((done.returncode, done.stdout), (0, native.stdout), done.stderr)
        with open(report, encoding="utf-8") as file:
            return json.load(file)["totals"]["counters"]

    def test_the_server_computes_in_the_place_of_sending(self):
        key = self.path("far.key")
        self.assertEqual(self.call("serve", "--make-key", key).returncode, 0)
        far = self.server("--key-file", key)
        for options in [], ["--fault", "signal"]:
            self.assertGreater(self.counters(far, "--key-file", key, *options)["pages_offloaded"], 10_000)

    def test_who_offers_nothing_sends(self):
        for far in self.server("--no-offload"), "zmem:":
            self.assertEqual(self.counters(far)["pages_offloaded"], 0)


if __name__ == "__main__":
    unittest.main()
