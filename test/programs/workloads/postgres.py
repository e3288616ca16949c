"""PostgreSQL in single-user mode: sorts, hashes and joins in a backend's own memory; rows that it prints compared.

The tables are sets of generated rows, so that nothing is written and each run starts with the same cluster. Shared
buffers are shared memory, which stays local: they are small.
"""

import glob
import os
import pwd
import subprocess

from harness.errors import Failure, Skip
from harness.program import Batch, file_hash, need

ROWS = 500_000

SETTINGS = ("shared_buffers=16MB", "work_mem=1GB", "hash_mem_multiplier=1", "max_parallel_workers_per_gather=0",
            "jit=off", "fsync=off", "log_min_messages=fatal")
# The single-user mode reads a statement a line: see one_a_line().
QUERIES = """
select count(*), sum(i), md5(string_agg(k, '' order by k, i))
  from (select i, md5((i * 7919 + {seed})::text) k from generate_series(1, {rows}) i) t;
with big as materialized
    (select i, i * 2654435761 % 1000003 w, md5(i::text) k from generate_series(1, {rows}) i),
  other as materialized
    (select i * 7 % {rows} i, md5((i + {seed})::text) k from generate_series(1, {rows}) i)
  select count(*), sum(b.w), min(o.k), max(b.k) from big b join other o on o.i = b.i;
select count(*), sum(n), max(k)
  from (select substr(md5((i + {seed})::text), 1, 5) k, count(*) n from generate_series(1, {rows}) i group by 1) t;
select count(*), sum(c)
  from (select i % 1009 f, count(distinct md5(i::text)) c from generate_series(1, {rows}) i group by 1) t;
select sum(r % 1000), max(s)
  from (select row_number() over (order by md5(i::text)) r, sum(i) over (partition by i % 97 order by i) s
    from generate_series(1, {rows}) i) t;
"""


def one_a_line(text):
    return "".join(" ".join(statement.split()) + ";\n" for statement in text.split(";") if statement.strip())


class Postgres(Batch):
    name = "postgres"
    help = "PostgreSQL, one backend: sorts, hashes, joins, windows"

    def prepare(self):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not found:
            raise Skip("postgresql is not installed")
        self._programs = found[-1]
        self._user = self._other_user() if os.geteuid() == 0 else None
        with open(self.path("queries.sql"), "w", encoding="utf-8") as file:
            file.write(one_a_line(QUERIES.format(rows=int(ROWS * self.scale), seed=self.seed % 1000)))
        cluster = self.path("cluster")
        os.makedirs(cluster, mode=0o700)
        if self._user:
            for path in (self.folder, cluster):
                os.chown(path, self._user.pw_uid, self._user.pw_gid)
        made = subprocess.run([*self.wrapper(), os.path.join(self._programs, "initdb"), "-D", cluster, "-A", "trust",
                               "-E", "UTF8", "--locale=C", "--no-sync"], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise Failure(f"initdb: {made.stderr.strip()[-300:]}")

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
        settings = " ".join(f"-c {setting}" for setting in SETTINGS)
        return ["/bin/sh", "-c", f"exec {self._programs}/postgres --single -D {self.path('cluster')} {settings} postgres"
                                 f" <{self.path('queries.sql')}"]

    def answer(self, stdout):
        with open(stdout, encoding="utf-8") as file:
            rows = sum(" = " in line for line in file)
        if rows == 0:
            raise Failure("PostgreSQL gave no rows")
        return {"rows": rows, "output": file_hash(stdout)}
