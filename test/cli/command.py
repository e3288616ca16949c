"""Calls the command under test in a clean environment and a directory of its own."""

import os
import subprocess
import tempfile
import unittest

HINTERLAND = os.environ.get("HINTERLAND_TEST_COMMAND", "build/bin/hinterland")
SOURCE = os.environ.get("HINTERLAND_TEST_SOURCE", ".")
LIBRARY = os.path.join(os.path.dirname(HINTERLAND), "..", "lib", "libhinterland-preload.so")


class CommandTest(unittest.TestCase):
    def setUp(self):
        self._temporary = tempfile.TemporaryDirectory(prefix="hinterland-cli-")
        self.directory = self._temporary.name
        self.addCleanup(self._temporary.cleanup)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("HINTERLAND_")}
        self.environment.pop("LD_PRELOAD", None)
        # In memory: where a disk is slow, programs and commands would wait for it.
        figures = tempfile.TemporaryDirectory(prefix="figures-of-a-test-", dir="/dev/shm")
        self.addCleanup(figures.cleanup)
        self.figures_folder = os.path.join(figures.name, "stats")
        self.environment["HINTERLAND_STAT_DIR"] = self.figures_folder

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text, mode=0o600):
        with open(self.path(name), "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(self.path(name), mode)
        return self.path(name)

    def call(self, *arguments, timeout=100, **variables):
        environment = dict(self.environment, **variables)
        return subprocess.run([HINTERLAND, *arguments], env=environment, cwd=self.directory, timeout=timeout,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")

    def assert_refused(self, status, *words, arguments, **variables):
        """Exit status, nothing on stdout, and a message with these words and a next step."""
        done = self.call(*arguments, **variables)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        for word in words:
            self.assertIn(word, done.stderr)
        lines = done.stderr.strip().splitlines()
        self.assertGreaterEqual(len(lines), 2, "no next step: " + done.stderr)
        for line in lines:
            self.assertTrue(line.startswith("hinterland: "), line)
        return done

    def need_library(self):
        if not os.path.exists(LIBRARY):
            self.skipTest("the preloaded library is not built")
        done = self.call("doctor")
        if done.returncode != 0:
            self.skipTest("this machine cannot run programs on far memory: " + done.stdout)
