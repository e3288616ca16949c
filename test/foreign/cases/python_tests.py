"""Python's own tests (Debian's libpython3.11-testsuite): each test that passes natively."""

import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as tree

from harness.errors import Failure, Skip
from harness.program import Batch

from passes import Passes

MODULES = ("test_mmap", "test_fork1", "test_subprocess", "test_threading", "test_multiprocessing_fork", "test_gc",
           "test_io", "test_pickle", "test_zlib", "test_sqlite3")
SHORT_MODULES = ("test_subprocess", "test_threading", "test_pickle", "test_fork1", "test_gc", "test_zlib", "test_mmap")

# What the short form leaves out: tests that mostly sleep, and variants that differ only in Python code.
LEFT_OUT_IN_SHORT = (
    "test.fork_wait.*", "*NoPoll*", "*timeout*", "*_dead", "*test_join_nondaemon_on_shutdown", "*repeated_call*",
    "test.test_threading.Barrier*", "*PyRLock*", "*test_set_and_clear", "*test_trashcan_threads",
    "test.test_pickle.Py*", "test.test_pickle.Dump*", "test.test_pickle.CDump*", "*_many_objects", "*delayed_writer",
    "*test_pass_fds", "*test_leaking_fds_on_error", "*test_call_string*", "*BigmemP*")
# `python -m test`: 2 says that a test failed, 3 that one changed the environment. 4 would be that none ran.
WELL = (0, 2, 3)


def python_with(module):
    """The system's Python when it has this test, else another one that does; Skip when there is none."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    others = {os.path.realpath(path) for path in (shutil.which(name, path=folder) for folder in folders
                                                  for name in ("python3", "python3.13", "python3.12")) if path}
    for python in ("/usr/bin/python3", *sorted(others)):
        if os.path.exists(python) and subprocess.run(
                [python, "-c", f"import importlib.util as u, sys; sys.exit(u.find_spec('test.{module}') is None)"],
                capture_output=True, check=False).returncode == 0:
            return python
    raise Skip(f"no Python here has test.{module} (Debian: libpython3.11-testsuite, which leaves some out)")


class PythonTests(Passes, Batch):
    modules = ()
    tries = 2  # many of them measure time
    jobs = 0

    def prepare(self):
        self._python = python_with(self.modules[0])

    def command(self):
        for name in ("temporary", "results.xml"):
            shutil.rmtree(self.path(name), ignore_errors=True)
        os.makedirs(self.path("temporary"))
        if os.path.exists(self.path("results.xml")):
            os.unlink(self.path("results.xml"))
        left_out = LEFT_OUT_IN_SHORT if self.short else ()
        return [self._python, "-m", "test", "--junit-xml", self.path("results.xml"),
                "--tempdir", self.path("temporary"),
                *(["-j", self.jobs] if self.jobs else []),
                *(word for pattern in left_out for word in ("--ignore", pattern)), *self.modules]

    def accept(self, code):
        self.forgive_exit(code, WELL)

    def answer(self, stdout):
        try:
            cases = list(tree.parse(self.path("results.xml")).getroot().iter("testcase"))
        except (OSError, tree.ParseError) as error:
            raise Failure(f"no results: {error}") from None
        return {re.sub(r"^test\.", "", case.get("name")): "passed" for case in cases
                if case.get("result") == "completed" and len(case) == 0}


class PythonShort(PythonTests):
    name = "python-short"
    help = "Python's tests of " + " ".join(module[5:] for module in SHORT_MODULES) + ", quick ones, side by side"
    modules = SHORT_MODULES
    in_long = False
    jobs = 3  # they sleep a lot


def _one(module):
    return type(module, (PythonTests,), {"name": "python-" + module[5:], "help": f"Python's own {module}",
                                         "modules": (module,), "in_short": False})


PYTHON = tuple(_one(module) for module in MODULES)
