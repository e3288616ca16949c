"""Node.js: objects, strings, typed arrays, workers and child processes; hashes of what comes out."""

import os

from harness.program import Batch, need

from passes import Passes

INSIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "inside", "node_work.js")


class Node(Passes, Batch):
    name = "node"
    help = "Node.js: a heap of objects, typed arrays, zlib, workers, a forked child"
    in_short = False  # a large package

    def prepare(self):
        self._node = need("node")

    def command(self):
        return [self._node, "--expose-gc", os.path.normpath(INSIDE), self.scale, self.seed]

    def answer(self, stdout):
        with open(stdout, encoding="utf-8") as file:
            return dict(line.rstrip("\n").split(": ", 1) for line in file)
