"""Perl: hashes, sorting, strings, regular expressions, pack and Storable, children that report through a pipe."""

import os

from harness.program import Batch, need

from passes import Passes

INSIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "inside", "perl_work.pl")


class Perl(Passes, Batch):
    name = "perl"
    help = "Perl: hashes, sorts, strings, regular expressions, forked children"

    def prepare(self):
        self._perl = need("perl")

    def command(self):
        return [self._perl, os.path.normpath(INSIDE), self.scale, self.seed]

    def answer(self, stdout):
        with open(stdout, encoding="utf-8") as file:
            return dict(line.rstrip("\n").split(": ", 1) for line in file)
