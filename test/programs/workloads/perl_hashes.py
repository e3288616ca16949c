"""Perl with large hashes: filled, looked up, inverted, sorted by value, partly deleted; what it prints compared."""

import os

from harness.program import Batch, need

HERE = os.path.dirname(os.path.abspath(__file__))
KEYS = 250_000


class Perl(Batch):
    name = "perl"
    help = "Perl: large hashes of strings and lists"

    def prepare(self):
        self._perl = need("perl")

    def command(self):
        # Hashes lie the same in each run: which pages are touched in which order is part of the job.
        return ["/usr/bin/env", "PERL_HASH_SEED=0", self._perl, os.path.join(HERE, "inside", "perl_hashes.pl"),
                int(KEYS * self.scale), self.seed]
