"""`hinterland run --local-total`: processes share one budget, and it goes to who misses pages."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

from command import CommandTest, HINTERLAND

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
MIB = 1 << 20
TOTAL = 96 * MIB
SECONDS_MAX = 100

# Reads pages at random while told to ("w"), until told not to ("i"); ends with its input. Says when it is there, and
# whether a byte was another than it had written.
WORKER = f"""import os, random, select
pages = {64 * MIB} // 4096
data = bytearray(pages * 4096)
for page in range(pages):
    data[page * 4096] = page % 251
os.write(1, b"ready\\n")
numbers, working, wrong = random.Random(1), False, 0
while True:
    if select.select([0], [], [], 0 if working else None)[0]:
        word = os.read(0, 1)
        if not word:
            break
        working = word == b"w"
    if working:
        for _ in range(500):
            page = numbers.randrange(pages)
            wrong += data[page * 4096] != page % 251
os.write(1, b"wrong\\n" if wrong else b"right\\n")
"""

# Starts two of them, and passes on to each what is said to it: "a w", "b i".
TREE = """import subprocess, sys
workers = {name: subprocess.Popen([sys.executable, "worker.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
           for name in "ab"}
for name, worker in workers.items():
    worker.stdout.readline()
    print(name, worker.pid, flush=True)
for line in sys.stdin:
    name, word = line.split()
    workers[name].stdin.write(word.encode())
    workers[name].stdin.flush()
for worker in workers.values():
    worker.stdin.close()
    print(worker.stdout.read().decode().strip(), worker.wait(), flush=True)
"""

POOL = """import hashlib, multiprocessing
def job(number):
    block = bytearray(12 << 20)
    for at in range(0, len(block), 4096):
        block[at:at + 8] = (at * number).to_bytes(8, "little")
    return hashlib.sha256(block).hexdigest()
if __name__ == "__main__":
    with multiprocessing.Pool(8) as pool:
        print("\\n".join(pool.map(job, range(16), chunksize=1)))
"""

MAKEFILE = """outputs = $(addsuffix .sum,1 2 3 4 5 6 7 8)
all: $(outputs)
%.sum:
\t@{python} -c 'x = bytearray(24 << 20); x[::4096] = bytes(i * $* % 251 for i in range(len(x) >> 12)); print(sum(x))' > $@
"""


class Sharing(CommandTest):
    def setUp(self):
        super().setUp()
        self.need_library()
        self.write("worker.py", WORKER)
        self.tree = None

    def tearDown(self):
        if self.tree is not None:
            self.tree.stdin.close()
            self.tree.stdout.close()
            self.tree.kill()
            self.tree.wait()
        super().tearDown()

    def start_tree(self):
        self.tree = subprocess.Popen(
            [HINTERLAND, "run", "--local-total", str(TOTAL), "--far", "mem:", "--", PYTHON, self.write("tree.py", TREE)],
            env=self.environment, cwd=self.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.workers = {}
        for _ in "ab":
            name, pid = self.tree.stdout.readline().split()
            self.workers[name] = int(pid)

    def tell(self, *words):
        for word in words:
            self.tree.stdin.write(word + "\n")
        self.tree.stdin.flush()

    def budgets(self):
        done = subprocess.run([HINTERLAND, "stat", "--json"], env=self.environment, capture_output=True, text=True,
                              timeout=30, check=True)
        return {program["pid"]: program["gauges"]["budget_bytes"] for program in json.loads(done.stdout)["programs"]}

    def budgets_within(self):
        """Pages are read one after the other: what moves meanwhile may be seen twice, but not three times in a row."""
        for _ in range(3):
            budgets = self.budgets()
            if sum(budgets.values()) <= TOTAL:
                return budgets
        self.fail(f"more than {TOTAL}: {budgets}")

    def wait_until(self, holds):
        """Looks at budgets until `holds(a's, b's)`; together they are within the total at each look."""
        end = time.monotonic() + SECONDS_MAX
        while time.monotonic() < end:
            budgets = self.budgets_within()
            if holds(*(budgets[self.workers[name]] for name in "ab")):
                return budgets
        self.fail(f"not within {SECONDS_MAX} s: {budgets}, workers {self.workers}")

    def end_tree(self):
        self.tree.stdin.close()
        said = self.tree.stdout.read().split("\n")
        self.assertEqual(said[:2], ["right 0", "right 0"])

    def test_memory_follows_those_who_miss_pages(self):
        self.start_tree()
        self.tell("a w")
        self.wait_until(lambda a, b: a > 2 * b)
        self.tell("a i", "b w")
        self.wait_until(lambda a, b: b > 2 * a)
        self.tell("b i", "a w")
        budgets = self.wait_until(lambda a, b: a > 2 * b)
        self.assertGreaterEqual(min(budgets.values()), 4 * MIB)
        self.end_tree()
        self.assertEqual(self.tree.wait(), 0)

    def test_programs_go_on_within_the_total_when_their_parent_is_killed(self):
        self.start_tree()
        self.tell("a w")
        self.wait_until(lambda a, b: a > 2 * b)
        self.tree.send_signal(signal.SIGKILL)
        self.tree.wait()
        self.budgets_within()
        self.tell("a i", "b w")
        self.end_tree()

    def both_ways(self, *program, files=()):
        """What it prints, and what is then in these files, natively and with a common budget; and the report."""
        results = []
        for before in ([], [HINTERLAND, "run", "--local-total", "64M", "--report", "run.json", "--"]):
            done = subprocess.run([*before, *program], env=self.environment, cwd=self.directory, timeout=SECONDS_MAX,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            found = [done.stdout]
            for name in files:
                with open(self.path(name), encoding="utf-8") as file:
                    found.append(file.read())
                os.unlink(self.path(name))
            results.append(found)
        self.assertEqual(results[0], results[1])
        with open(self.path("run.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_a_pool_of_eight(self):
        report = self.both_ways(PYTHON, self.write("pool.py", POOL))
        self.assertGreaterEqual(report["process_count"], 9)
        self.assertEqual(report["budget_bytes"], 64 * MIB)
        self.assertGreater(report["totals"]["counters"]["pages_out"], 0, "nothing was far")

    @unittest.skipUnless(shutil.which("make"), "there is no make")
    def test_make_with_eight_jobs(self):
        self.write("Makefile", MAKEFILE.format(python=PYTHON))
        report = self.both_ways("make", "-j8", files=[f"{number}.sum" for number in range(1, 9)])
        self.assertGreaterEqual(report["process_count"], 9)
        self.assertGreater(report["totals"]["counters"]["pages_out"], 0, "nothing was far")


if __name__ == "__main__":
    unittest.main()
