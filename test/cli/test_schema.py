"""What --json and --report print is what docs/schema/ says, key by key: the schemas are closed."""

import json
import os
import shutil
import subprocess
import unittest

from command import CommandTest, HINTERLAND, SOURCE

try:
    import jsonschema
except ImportError:  # python3-jsonschema, of scripts/packages
    jsonschema = None

SCHEMAS = os.path.join(SOURCE, "docs", "schema")
PROGRAM = os.path.join(SOURCE, "test", "trace", "programs", "random_array.c")
PYTHON = "/usr/bin/python3"


@unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
class Schema(CommandTest):
    def setUp(self):
        super().setUp()
        self.need_library()

    def hold(self, name, text):
        with open(os.path.join(SCHEMAS, name + ".json"), encoding="utf-8") as file:
            schema = json.load(file)
        jsonschema.Draft202012Validator.check_schema(schema)
        found = json.loads(text)
        problems = [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"
                    for error in jsonschema.Draft202012Validator(schema).iter_errors(found)]
        self.assertEqual(problems, [], name)
        return found

    def printed(self, *arguments):
        done = self.call(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_doctor(self):
        self.hold("doctor", self.printed("doctor", "--json"))

    def test_figures_of_programs_and_servers(self):
        program = [HINTERLAND, "run", "--local", "8M", "--", PYTHON, "-c",
                   "x = bytearray(1 << 25); print(sum(x[::4096]), flush=True); import sys; sys.stdin.read()"]
        server = [HINTERLAND, "serve", "--listen", "127.0.0.1:0", "--memory", "16M"]
        with subprocess.Popen(program, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running, \
                subprocess.Popen(server, env=self.environment, stdout=subprocess.PIPE) as serving:
            try:
                running.stdout.readline()
                serving.stdout.readline()
                found = self.hold("stat", self.printed("stat", "--json"))
                self.assertEqual([each["pid"] for each in found["programs"]], [running.pid])
                self.hold("stat", self.printed("stat", str(running.pid), "--json"))
                found = self.hold("stat-kinds", self.printed("stat", "--kinds", str(running.pid), "--json"))
                self.assertGreater(found["memory"]["paged"]["resident_bytes"], 0)
                self.assertGreater(found["memory"]["files"]["largest"][0]["resident_bytes"], 0)
                self.assertIn("in the budget", self.printed("stat", "--kinds", str(running.pid)))
                found = self.hold("top", self.printed("top", "--json"))
                self.assertEqual([each["pid"] for each in found["programs"]], [running.pid])
                listed = {each["pid"]: each["arguments"] for each in found["servers"]}
                self.assertEqual(listed[serving.pid], "--listen 127.0.0.1:0 --memory 16M")
                text = self.printed("top")
                self.assertIn("1 program:", text)
                self.assertIn("serve --listen 127.0.0.1:0", text)
            finally:
                serving.terminate()
                running.stdin.close()

    def test_nothing_runs(self):
        self.assertEqual(self.hold("stat", self.printed("stat", "--json"))["programs"], [])
        self.assertEqual(self.hold("top", self.printed("top", "--json"))["programs"], [])

    def test_report_of_a_run(self):
        for program in (["true"], ["sh", "-c", "kill -9 $$"],
                        [PYTHON, "-c", "x = bytearray(1 << 25); print(sum(x[::4096]))"]):
            self.call("run", "--local", "8M", "--report", "run.json", "--force", "--", *program)
            with open(self.path("run.json"), encoding="utf-8") as file:
                self.hold("run-report", file.read())

    def test_compare(self):
        for program in (["true"], [PYTHON, "-c", "x = bytearray(1 << 25); print(sum(x[::4096]))"]):
            self.hold("compare", self.printed("compare", "--swap", "never", "--repeat", "1", "--json", "--", *program))

    @unittest.skipUnless(shutil.which("gcc"), "there is no gcc")
    def test_traces(self):
        subprocess.run(["gcc", "-g", "-O2", "-I", os.path.join(SOURCE, "include"), "-o", self.path("plain"), PROGRAM],
                       check=True)
        shutil.copy(PROGRAM, self.directory)
        for name, local in (("a.trace", "4M"), ("b.trace", "8M")):
            self.printed("trace", "--local", local, "--far", "mem:", "--read-ahead", "0", "--takeover", "start", "-o", name,
                         "--", self.path("plain"), "4096", "4")
        self.hold("report", self.printed("report", "a.trace", "--json"))
        self.hold("report-of-several", self.printed("report", "a.trace", "b.trace", "--json"))
        self.hold("replay", self.printed("replay", "a.trace", "--json"))
        self.hold("replay", self.printed("replay", "a.trace", "--sweep", "--json"))
        self.hold("advise", self.printed("advise", "a.trace", "--json"))
        self.hold("advise-budget", self.printed("advise", "a.trace", "--budget", "--json"))

    def test_another_key_is_found(self):
        found = json.loads(self.printed("doctor", "--json"))
        with open(os.path.join(SCHEMAS, "doctor.json"), encoding="utf-8") as file:
            validator = jsonschema.Draft202012Validator(json.load(file))
        self.assertTrue(list(validator.iter_errors({**found, "more": 1})))
        self.assertTrue(list(validator.iter_errors({**found, "schema_version": 2})))


if __name__ == "__main__":
    unittest.main()
