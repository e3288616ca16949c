"""Java (HotSpot) with each of its collectors: maps, strings, sorts, streams in threads; hashes of what comes out."""

import os
import subprocess

from harness.errors import Skip
from harness.program import Batch, need

from passes import Passes

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "inside", "JavaWork.java")


class Java(Passes, Batch):
    in_short = False  # a large package
    collector = ""

    def prepare(self):
        self._java, compiler = need("java"), need("javac")
        done = subprocess.run([compiler, "-d", self.folder, os.path.normpath(SOURCE)], capture_output=True, text=True,
                              timeout=300, check=False)
        if done.returncode != 0:
            raise Skip(f"javac: {done.stderr[:200]}")

    def command(self):
        return [self._java, f"-XX:+Use{self.collector}GC", f"-Xmx{int(64 + 256 * self.scale)}m", "-cp", self.folder,
                "JavaWork", self.scale, self.seed]

    def answer(self, stdout):
        with open(stdout, encoding="utf-8") as file:
            return dict(line.rstrip("\n").split(": ", 1) for line in file)


def _with(collector):
    return type(collector, (Java,), {"name": f"java-{collector.lower()}", "collector": collector,
                                     "help": f"Java with the {collector} collector: maps, strings, sorts, threads"})


# The heap of Z is shared memory, which stays local (docs/running.md); what is beside it is far.
JAVA = tuple(_with(collector) for collector in ("Serial", "Parallel", "G1", "Z"))
