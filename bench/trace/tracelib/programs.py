"""Programs that others wrote, which the scripts of bench/trace run far; and how they are run and traced."""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time

LEAST_LOCAL = 4 << 20

PYTHON_DICT = """
d = {}
for i in range(N): d[i * 7919 % 1000003] = str(i)
print(sum(len(d[i * 7919 % 1000003]) for i in range(0, N, 3)))"""
PYTHON_OBJECTS = """
class Node:
    def __init__(self, key): self.key, self.left, self.right = key, None, None
root, state = Node(500000), 1
for _ in range(N // 3):
    state = state * 1103515245 + 12345 & 0x7fffffff
    node, key = root, state % 1000000
    while True:
        side = 'left' if key < node.key else 'right'
        down = getattr(node, side)
        if down is None: break
        node = down
    setattr(node, side, Node(key))
def depth(node): return 0 if node is None else 1 + max(depth(node.left), depth(node.right))
print(depth(root))"""
PYTHON_SORT = """
import random
random.seed(1)
a = [random.random() for _ in range(2 * N)]
a.sort()
print(a[N])"""
PYTHON_JSON = """
import json
text = json.dumps([{'id': i, 'name': 'n%d' % i, 'tags': [i, i + 1]} for i in range(N // 2)])
print(sum(x['id'] for x in json.loads(text)))"""
NUMPY_SORT = """
import numpy
a = numpy.random.default_rng(1).random(16 * N)
a.sort()
print(a[N])"""
NUMPY_GATHER = """
import numpy
r = numpy.random.default_rng(1)
a = r.random(12 * N)
print(a[r.integers(0, len(a), 4 * N)].sum())"""
PERL_HASH = """my %h; for my $i (0 .. N) { $h{$i * 7919 % 1000003} = "v$i"; }
my $s = 0; for my $k (keys %h) { $s += length $h{$k}; } print "$s\\n";"""
AWK_ARRAY = "BEGIN { for (i = 0; i < N; i++) a[i * 7919 % 1000003] = i; for (k in a) s += a[k]; print s }"
NODE_OBJECTS = """const m = new Map(); for (let i = 0; i < N; i++) m.set(i * 7919 % 1000003, {i, s: 'x' + i});
let s = 0; for (const v of m.values()) s += v.s.length; console.log(s);"""
SQL = """create table t(a integer primary key, b text, c integer);
with recursive n(i) as (select 0 union all select i + 1 from n where i < N)
insert into t select i, hex(i * 7919), i * 7919 % 10007 from n;
create index u on t(c);
select count(*), sum(length(x.b)) from t x join t y on x.c = y.c where y.a < 2000;"""


# A server and its client: the client's answers are the output, and the process that faults most is looked at.
REDIS = """redis-server --save '' --port 0 --unixsocket r.sock --daemonize no >/dev/null 2>&1 &
until redis-cli -s r.sock ping >/dev/null 2>&1; do sleep 0.05; done
redis-cli -s r.sock --pipe <stores >/dev/null && redis-cli -s r.sock <looks
redis-cli -s r.sock shutdown nosave; wait"""


def write_redis_commands(folder, n):
    if (folder / "looks").exists():
        return
    with open(folder / "stores", "w", encoding="ascii") as file:
        file.writelines(f"SET key:{i} {'v' * 200}{i}\r\n" for i in range(n))
    with open(folder / "looks", "w", encoding="ascii") as file:
        file.writelines(f"STRLEN key:{i * 7919 % n}\n" for i in range(n))


def write_c_source(path, functions):
    """Many functions that call each other, for a compiler."""
    with open(path, "w", encoding="ascii") as file:
        file.write("int f0(int a, int b) { return a ^ b; }\n")
        for i in range(1, functions):
            file.write(f"int f{i}(int a, int b) {{ int s = {i}; for (int k = 0; k < b; ++k) "
                       f"s += f{i * 7919 % i}(a + k, k) * {i % 97} ^ (s >> {i % 13}); return s % 3 ? s : a; }}\n")


def programs(n, folder):
    """(name, argv, input file or None)"""
    write_redis_commands(folder, n)
    write_c_source(folder / "many.c", n // 40)
    text = folder / "text"
    if not text.exists():
        with open(text, "w", encoding="ascii") as file:
            state = 1
            for _ in range(n):
                state = (state * 1103515245 + 12345) & 0x7fffffff
                file.write(f"{state:010d} {state % 9973} the quick brown fox\n")
    python, perl = "/usr/bin/python3", "/usr/bin/perl"

    def script(code):
        return code.replace("N", str(n)) if code is not SQL else code.replace("< N", f"< {n}")
    return [
        ("sort", ["/usr/bin/sort", "-S", "1G", "--parallel=1", str(text)], None),
        ("sort-threads", ["/usr/bin/sort", "-S", "1G", "--parallel=4", "-k2", str(text)], None),
        ("awk-array", ["/usr/bin/awk", AWK_ARRAY.replace("< N", f"< {2 * n}")], None),
        ("perl-hash", [perl, "-e", script(PERL_HASH)], None),
        ("python-dict", [python, "-c", f"N = {n}" + PYTHON_DICT], None),
        ("python-objects", [python, "-c", f"N = {n}" + PYTHON_OBJECTS], None),
        ("python-sort", [python, "-c", f"N = {n}" + PYTHON_SORT], None),
        ("python-json", [python, "-c", f"N = {n}" + PYTHON_JSON], None),
        ("numpy-sort", [python, "-c", f"N = {n // 4}" + NUMPY_SORT], None),
        ("numpy-gather", [python, "-c", f"N = {n // 4}" + NUMPY_GATHER], None),
        ("sqlite", ["/usr/bin/sqlite3", ":memory:"], script(SQL)),
        ("xz", ["/usr/bin/xz", "-6", "-T1", "-c", str(text)], None),
        ("zstd", ["/usr/bin/zstd", "-9", "--long=27", "-q", "-c", str(text)], None),
        ("node-objects", [shutil.which("node") or "node", "-e", f"const N = {n};" + NODE_OBJECTS], None),
        ("redis", ["/bin/sh", "-c", "exec 2>&1; " + REDIS], None),
        ("gcc", ["/usr/bin/gcc", "-O2", "-S", "-o", "-", "many.c"], None),
        ("jq", ["/usr/bin/jq", "-R", "-s", "split(\"\\n\") | map(split(\" \")) | length", str(text)], None),
    ]


class Runner:
    """Runs words in `folder`; what does not end in time is told to, and is a RuntimeError."""

    def __init__(self, hinterland, folder, seconds_max, fault="message"):
        self.hinterland, self.folder, self.seconds_max = hinterland, folder, seconds_max
        self.far = ("--far", "mem:", "--fault", fault)  # of all that is far

    def run(self, words, text):
        """(seconds, output's hash, peak bytes); of the program's own time, by the shell's clock."""
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            stdin.write((text or "").encode())
            stdin.seek(0)
            begun = time.monotonic()
            process = subprocess.Popen(words, stdin=stdin, stdout=out, stderr=errors, cwd=self.folder)
            # Some programs thrash at 10 %: they are left out, with their name. `trace` and `run` pass the signal on.
            limit = threading.Timer(self.seconds_max, process.terminate)
            limit.start()
            _, status, usage = os.wait4(process.pid, 0)
            limit.cancel()
            seconds = time.monotonic() - begun
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                errors.seek(0)
                if seconds >= self.seconds_max:
                    raise RuntimeError(f"given up after {self.seconds_max} s")
                raise RuntimeError(f"{words[0]}: exit status {process.returncode}: {errors.read()[-300:]!r}")
            out.seek(0)
            return seconds, hashlib.sha256(out.read()).hexdigest(), usage.ru_maxrss * 1024

    def traced(self, argv, text, local, *options):
        for old in self.folder.glob("t.trace*"):
            old.unlink()
        return self.run([self.hinterland, "trace", "--quiet", "--local", str(local), *self.far, "-o", "t.trace",
                         *options, "--", *argv], text)

    def report(self, *options):
        """Of the process with most faults; None where none had any."""
        best = None
        for trace in self.folder.glob("t.trace*"):
            done = subprocess.run([self.hinterland, "report", trace, "--json", "--top", "1000000", *options],
                                  capture_output=True, check=True)
            report = json.loads(done.stdout)
            if best is None or report["faults"] > best["faults"]:
                best = report
        return best
