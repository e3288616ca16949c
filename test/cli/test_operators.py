"""`hinterland serve --operators`: operators out of files, what is said of those that cannot be used, and a program that
uses one."""

import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from command import HINTERLAND, SOURCE, CommandTest

INCLUDE = os.path.join(SOURCE, "include")
BUILD = os.path.join(os.path.dirname(HINTERLAND), "..")

OPERATOR = r"""
#include <hinterland/operator.h>
static void compute(const void* argument, uint64_t word, const void* piece, size_t bytes, void* result) {
  (void)argument, (void)word, (void)bytes;
  *(char*)result = *(const char*)piece;
}
HL_OPERATOR_PLUGIN = {VERSION, 1, NAME, ELEMENT, 0, RESULT, 0, FUNCTION};
"""


class Operators(CommandTest):
    def setUp(self):
        super().setUp()
        self.folder = self.path("operators")
        os.mkdir(self.folder, 0o755)

    def build(self, name, source=OPERATOR, options=(), **values):
        """A library in the folder."""
        wanted = dict(VERSION="HL_OPERATOR_ABI_VERSION", NAME='"first"', ELEMENT=1, RESULT=1, FUNCTION="compute")
        wanted.update(values)
        path = os.path.join(self.folder, name)
        words = ["cc", "-shared", "-fPIC", "-I", INCLUDE, "-x", "c", "-", "-o", path, *options]
        words += [f"-D{key}={value}" for key, value in wanted.items()]
        subprocess.run(words, input=source, text=True, check=True, capture_output=True)
        os.chmod(path, 0o644)
        return path

    def refused(self, *words, folder=None):
        arguments = ["serve", "--listen", "127.0.0.1:0", "--memory", "16M", "--operators", folder or self.folder]
        self.assert_refused(1, "operators: ", *words, arguments=arguments)

    def serve(self, *options):
        """A server that ends with the test, and the URL of it."""
        words = [HINTERLAND, "serve", "--listen", "127.0.0.1:0", "--memory", "256M", *options]
        process = subprocess.Popen(words, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.terminate)
        return process, "tcp://" + process.stdout.readline().split()[2].rstrip(",")

    def test_folders_that_do_not_serve(self):
        self.refused("No such file", folder=self.path("nowhere"))
        self.refused("ends in .so")
        file = self.write("file", "")
        self.refused("Not a directory", folder=file)
        self.assert_refused(2, "contradict", arguments=["serve", "--no-offload", "--operators", self.folder])
        self.assert_refused(2, "--operators", arguments=["serve", "--operators", ""])

    def test_who_else_may_write(self):
        path = self.build("first.so")
        os.chmod(path, 0o664)
        self.refused("others than its owner may write", "first.so", "chmod go-w")
        os.chmod(path, 0o646)
        self.refused("others than its owner may write", "first.so")
        os.chmod(path, 0o644)
        for folder in self.folder, self.directory:
            mode = os.stat(folder).st_mode & 0o777
            os.chmod(folder, 0o777)
            self.refused("others than its owner may write", os.path.realpath(folder))
            os.chmod(folder, mode)
        if os.geteuid() == 0:
            os.chown(path, 4711, -1)
            self.refused("belongs to user 4711", "chown 0")
            os.chown(path, 0, -1)
        os.rename(path, self.path("elsewhere"))
        os.symlink(self.path("elsewhere"), path)
        self.refused("no ordinary file", "first.so")

    def test_files_that_are_no_operators(self):
        path = os.path.join(self.folder, "bad.so")
        with open(path, "w", encoding="utf-8") as file:
            file.write("not a library")
        os.chmod(path, 0o644)
        self.refused("bad.so cannot be loaded", "cc -shared")
        self.build("bad.so", "int something;")
        self.refused("defines no hl_operator_plugin", "HL_OPERATOR_PLUGIN")
        self.build("bad.so", "extern int nowhere(void); int something(void) { return nowhere(); }")
        self.refused("bad.so cannot be loaded", "nowhere")
        self.build("bad.so", VERSION=7)
        self.refused("built for operator interface 7, this is 1", "build it again")
        for what, words in [
            (dict(NAME='""'), "has a name that"), (dict(NAME="0"), "has no name"), (dict(NAME='"a/b"'), "has a name that"),
            (dict(NAME='"12345678901234567890123456789012"'), "has a name that"), (dict(ELEMENT=0), "element_bytes"),
            (dict(ELEMENT=4097), "element_bytes"), (dict(RESULT=0), "result_bytes"), (dict(RESULT=513), "result_bytes"),
            (dict(FUNCTION="0"), "has no function"),
        ]:
            with self.subTest(what=what):
                self.build("bad.so", **what)
                self.refused("bad.so", words)
        self.build("bad.so")
        self.build("good.so")
        self.refused("are both named first", "bad.so", "good.so")

    def test_says_what_it_offers(self):
        path = os.path.realpath(self.build("first.so"))
        process, _ = self.serve("-v", "--operators", self.folder)
        top = json.loads(self.call("top", "--json").stdout)
        mine = [each for each in top["servers"] if self.folder in each["arguments"]]
        self.assertEqual([each["pid"] for each in mine], [process.pid], "the processes of the operators are no servers")
        # The server does not wait for the second one.
        end = time.monotonic() + 100
        while len(self.descendants(process.pid)) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual(len(self.descendants(process.pid)), 2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 0)
        self.assertIn(f"offers operator first, version 1, of {path}", said)

    def descendants(self, pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            children = [int(word) for word in file.read().split()]
        return children + [each for child in children for each in self.descendants(child)]

    def test_a_program_uses_one(self):
        self.check_example("examples/operators/longest_trips.so", "operator", "48", 5_000)

    def test_lookups_in_a_table(self):
        self.check_example("lib/hinterland/operators/lookup.so", "table", "300000", 5_000)

    def check_example(self, library, program, argument, least):
        self.need_library()
        example = os.path.join(BUILD, "examples", program)
        if not os.path.exists(example):
            self.skipTest("the example is not built")
        shutil.copy(os.path.join(BUILD, library), self.folder)
        os.chmod(os.path.join(self.folder, os.path.basename(library)), 0o644)
        native = subprocess.run([example, argument], env=self.environment, capture_output=True, text=True, check=True)
        for options, at_server in (["--operators", self.folder], True), ([], False), (["--no-offload"], False):
            _, far = self.serve(*options)
            for how in "message", "signal":
                report = self.path("report.json")
                done = self.call("run", "--local", "16M", "--far", far, "--fault", how, "--report", report, "--force", "--",
                                 example, argument)
                self.assertEqual((done.returncode, done.stdout), (0, native.stdout), done.stderr)
                with open(report, encoding="utf-8") as file:
                    offloaded = json.load(file)["totals"]["counters"]["pages_offloaded"]
                self.assertEqual(offloaded > least, at_server, f"{options}: {offloaded}")


if __name__ == "__main__":
    unittest.main()
