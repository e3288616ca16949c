"""MariaDB: a buffer pool of 400 MiB, load, changes, kill -9 in a transaction, recovery; the contents are compared."""

import os
import shutil

from harness.program import Batch, need

from passes import Passes

INSIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "inside", "mariadb_work.py")


class MariaDb(Passes, Batch):
    name = "mariadb"
    help = "MariaDB: InnoDB tables, kill in a transaction, recovery"
    in_short = False  # a large package, half a minute

    def prepare(self):
        for program in ("mariadbd", "mariadb", "mariadb-install-db"):
            need(program)

    def command(self):
        shutil.rmtree(self.path("server"), ignore_errors=True)
        os.makedirs(self.path("server"))
        return ["/usr/bin/python3", os.path.normpath(INSIDE), self.path("server"), self.scale]

    def answer(self, stdout):
        with open(stdout, encoding="utf-8") as file:
            return dict(line.rstrip("\n").split(": ", 1) for line in file)
