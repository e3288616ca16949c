"""PostgreSQL with pgbench: everything from initdb to pg_amcheck runs under far memory, children inherit it."""

import glob
import os
import pwd
import shutil

from harness.errors import Skip
from harness.program import Batch, need

from passes import Passes

INSIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "inside", "postgres_work.py")


class Postgres(Passes, Batch):
    name = "postgres"
    help = "PostgreSQL: initdb, pgbench with several clients, big sorts and hashes, pg_amcheck"
    in_short = False  # a large package

    def prepare(self):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not found:
            raise Skip("postgresql is not installed")
        self._programs = found[-1]
        self._user = self._other_user() if os.geteuid() == 0 else None

    def _other_user(self):
        """PostgreSQL refuses root."""
        need("setpriv")
        try:
            return pwd.getpwnam("postgres")
        except KeyError:
            raise Skip("there is no user postgres") from None

    def wrapper(self):
        if not self._user:
            return []
        # CAP_SYS_PTRACE is what Linux asks for to handle faults inside system calls; ambient, exec keeps it.
        return [need("setpriv"), f"--reuid={self._user.pw_uid}", f"--regid={self._user.pw_gid}", "--clear-groups",
                "--inh-caps=+sys_ptrace", "--ambient-caps=+sys_ptrace"]

    def command(self):
        shutil.rmtree(self.path("cluster"), ignore_errors=True)
        os.makedirs(self.path("cluster"))
        if self._user:
            for path in (self.folder, self.path("cluster")):
                os.chown(path, self._user.pw_uid, self._user.pw_gid)
        return ["/usr/bin/python3", os.path.normpath(INSIDE), self._programs, self.path("cluster"), self.scale]

    def answer(self, stdout):
        with open(stdout, encoding="utf-8") as file:
            return dict(line.rstrip("\n").split(": ", 1) for line in file)
