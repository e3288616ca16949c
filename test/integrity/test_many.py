"""Many of everything under the smallest budget: mappings, threads, address space, and processes at one server.

HINTERLAND_MANY=long for ten times as much.
"""

import os
import re
import subprocess
import unittest

HINTERLAND = os.environ["HINTERLAND_TEST_COMMAND"]
MANY = os.environ["HINTERLAND_TEST_MANY"]
TIMES = 10 if os.environ.get("HINTERLAND_MANY") == "long" else 1
LOCAL = "4M"  # the least that there is
SECONDS_MAX = 100 * TIMES


def environment():
    return {name: value for name, value in os.environ.items() if not name.startswith("HINTERLAND_")}


def command(far, *words):
    return [HINTERLAND, "run", "--local", LOCAL, "--far", far, "--", MANY, *map(str, words)]


class Many(unittest.TestCase):
    def check(self, *words):
        done = subprocess.run(command("mem:", *words), env=environment(), capture_output=True, text=True,
                              timeout=SECONDS_MAX)
        self.assertEqual((done.returncode, done.stdout), (0, "right\n"), done.stderr)

    def test_mappings(self):
        # Not ten times: the kernel allows a process 65,530 of its own.
        self.check("mappings", 10_000 if TIMES == 1 else 30_000)

    def test_threads(self):
        self.check("threads", 1_000)

    def test_address_space(self):
        self.check("sparse", 256, 5_000 * TIMES)

    def test_processes_at_one_server(self):
        server = subprocess.Popen([HINTERLAND, "serve", "--listen", "127.0.0.1:0", "--memory", "4G"],
                                  env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        found = re.search(r"127\.0\.0\.1:(\d+)", server.stdout.readline())
        self.assertTrue(found, "the server says where it listens")
        all_of_them = [subprocess.Popen(command(f"tcp://127.0.0.1:{found[1]}", "mappings", 300 * TIMES),
                                        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                       for _ in range(100)]
        for process in all_of_them:
            self.addCleanup(process.kill)
        for number, process in enumerate(all_of_them):
            with self.subTest(process=number):
                out, errors = process.communicate(timeout=SECONDS_MAX)
                self.assertEqual((process.returncode, out), (0, "right\n"), errors)


if __name__ == "__main__":
    unittest.main()
