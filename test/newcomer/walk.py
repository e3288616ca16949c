"""The walk of a new user: the commands of README.md in order, as they stand there, and then wrong ones.

Each command of the README is typed into a shell in an empty folder where build/bin/hinterland is. Those that need
another machine are left out, and named below: a new one in the README is run, or has to be added there.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

COMMAND = os.path.abspath(os.environ["HINTERLAND_TEST_COMMAND"])
SOURCE = os.environ["HINTERLAND_TEST_SOURCE"]
# Their beginnings. The two machines of the README, and what is a test of its own.
NOT_HERE = ("hinterland serve --listen", "hinterland run --local 1G --far tcp://10.", "make ")
# What a user would put for these words.
MEANT = {"PROGRAM": "/usr/bin/python3 -c 'x = bytearray(1 << 25); print(sum(x[::4096]))'"}


def commands_of(path):
    """Lines of code in which a command stands, without what follows # and the prompt."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            found = re.match(r"    (?:\$ )?((?:build/bin/)?hinterland .*|make \w+)", line)
            if found:
                yield re.sub(r"\s+#.*", "", found[1]).strip()


class Walk(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="newcomer-")
        self.addCleanup(self.folder.cleanup)
        os.makedirs(os.path.join(self.folder.name, "build", "bin"))
        os.makedirs(os.path.join(self.folder.name, "figures"), mode=0o700)
        for at in ("build/bin/hinterland", "hinterland"):
            os.symlink(COMMAND, os.path.join(self.folder.name, at))
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("HINTERLAND_")}
        self.environment.update(PATH=self.folder.name + ":" + os.environ["PATH"],
                                HINTERLAND_STAT_DIR=os.path.join(self.folder.name, "figures"))

    def type(self, text):
        return subprocess.run(["/bin/sh", "-c", text], cwd=self.folder.name, env=self.environment, timeout=120,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def need_far_memory(self):
        if self.type("hinterland doctor").returncode != 0:
            self.skipTest("far memory does not work here: hinterland doctor says why")

    def test_the_commands_of_the_readme(self):
        self.need_far_memory()
        typed = []
        for command in commands_of(os.path.join(SOURCE, "README.md")):
            if command.startswith(NOT_HERE):
                continue
            for word, meant in MEANT.items():
                command = re.sub(rf"\b{word}\b", lambda _, meant=meant: meant, command)
            done = self.type(command)
            self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
            typed.append(command)
        for name in ("doctor", "run", "trace", "report"):
            self.assertTrue(any(f"hinterland {name} " in command + " " for command in typed), f"{name}: {typed}")

    def test_what_run_v_says_is_as_the_readme_has_it(self):
        """Word for word, but for figures."""
        self.need_far_memory()
        with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
            shown = re.search(r"\n    (hinterland: /usr/bin/python3 ended .*\n(?:    .+\n)*?)    \$ ", file.read())
        command = next(each for each in commands_of(os.path.join(SOURCE, "README.md")) if "run --local 64M -v" in each)
        done = self.type(command)

        def without_figures(text):
            return re.sub(r"[\d.]+ (?:[kMG]iB|[mun]?s)\b|[\d.]+ (?:bytes)\b|\d[\d.]*", "N",
                          re.sub(r"\n +", "\n", text)).split()
        self.assertEqual(without_figures(shown[1]), without_figures(done.stderr))


class Wrong(Walk):
    """Each message says what is wrong, and what to type instead or look at."""

    def refused(self, command, status, *words):
        done = self.type(command)
        self.assertEqual(done.returncode, status, f"{command}\n{done.stderr}")
        for word in words:
            self.assertIn(word, done.stderr, command)
        self.assertNotIn("Aborted", done.stderr)

    test_the_commands_of_the_readme = test_what_run_v_says_is_as_the_readme_has_it = None

    def test_words_that_are_no_commands(self):
        self.refused("hinterland rum -- true", 2, "run")
        self.refused("hinterland", 2, "hinterland help")

    def test_programs_that_are_not_there(self):
        self.refused("hinterland run -- ./app", 127, "./app")
        self.refused("hinterland run", 2, "no program", "hinterland run --local")
        self.refused("hinterland trace", 2, "no program")
        self.refused("hinterland compare", 2, "no program", "hinterland compare --")

    def test_sizes(self):
        self.refused("hinterland run --local 2 -- true", 2, "--local", "minimum")
        self.refused("hinterland run --local lots -- true", 2, "--local", "lots")
        self.refused("hinterland run --local 64M --local-total 1G -- true", 2, "contradict", "--local-total")
        self.refused("hinterland run --local-total 1M -- true", 2, "--local-total", "minimum")

    def test_devices(self):
        self.refused("hinterland run --far zmen: -- true", 2, "zmen")
        self.refused("hinterland run --far tcp://127.0.0.1:1 --timeout 1s -- true", 1, "127.0.0.1:1")
        self.refused("hinterland serve --listen 0.0.0.0:0", 1, "--key-file")

    def test_processes_and_files_that_are_not_there(self):
        self.refused("hinterland stat 999999999", 1, "no process", "hinterland stat")
        self.refused("hinterland tune 999999999 --local 1G", 1, "no process")
        self.refused("hinterland report there.is.none", 1, "there.is.none")
        self.refused("hinterland advise there.is.none", 1, "there.is.none")
        self.refused("hinterland top 4711", 2, "unexpected argument", "hinterland top --help")

    def test_a_typing_error_in_an_option(self):
        self.refused("hinterland run --locl 64M -- true", 2, "--locl")


if __name__ == "__main__":
    sys.exit(unittest.main())
