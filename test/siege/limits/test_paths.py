"""Paths that the command is given mean the same to a program that was started in another folder."""

import json
import os
import re
import subprocess
import unittest

from command import CommandTest, HINTERLAND

# 64 MiB, of which 8 MiB are local.
PAGES = "exec python3 -c 'x = bytearray(1 << 26)\nfor i in range(0, len(x), 4096): x[i] = 7\nprint(sum(x[::4096]))'"


class Paths(CommandTest):
    def setUp(self):
        super().setUp()
        self.need_library()
        self.environment.pop("HINTERLAND_STAT_DIR")

    def run_elsewhere(self, *options, command=PAGES, **variables):
        done = self.call("run", "--local", "8M", "--stat-dir", "figures", *options, "--", "/bin/sh", "-c",
                         "cd /proc && " + command, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def serve(self, key):
        server = subprocess.Popen([HINTERLAND, "serve", "--listen", "127.0.0.1:0", "--memory", "256M", "--key-file", key],
                                  env=self.environment, cwd=self.directory, stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        return "tcp://" + server.stdout.readline().split()[2].rstrip(",")

    def test_key_file(self):
        self.write("far.key", "0123456789abcdef" * 2)
        far = self.serve("far.key")
        self.assertEqual(self.run_elsewhere("--far", far, "--key-file", "far.key").stdout, "114688\n")
        self.assertEqual(self.run_elsewhere("--far", far, HINTERLAND_KEY_FILE="far.key").stdout, "114688\n")
        config = self.write("far.toml", f'key-file = "far.key"\nfar = "{far}"\n')
        self.assertEqual(self.run_elsewhere("--config", config).stdout, "114688\n")

    def test_file(self):
        for far in ["file:far?size=128M", "sim:latency=1us,inner=sim:inner=file:far?size=128M"]:
            with self.subTest(far=far):
                self.assertEqual(self.run_elsewhere("--far", far).stdout, "114688\n")
        self.assertFalse(os.path.exists(self.path("far")))

    def test_figures_of_all_that_was_started_are_in_the_report(self):
        self.run_elsewhere("--report", "report.json")
        with open(self.path("report.json")) as file:
            report = json.load(file)
        self.assertEqual(report["process_count"], 2)
        self.assertGreater(report["totals"]["counters"]["pages_out"], 0)

    def test_core(self):
        done = self.call("run", "--local", "8M", "--core", "core.%p", "--", "/bin/sh", "-c",
                         "cd /proc && exec python3 -c 'import os; os.abort()'")
        self.assertEqual(done.returncode, -6, done.stderr)
        cores = [name for name in os.listdir(self.directory) if re.fullmatch(r"core\.\d+", name)]
        self.assertEqual(len(cores), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
