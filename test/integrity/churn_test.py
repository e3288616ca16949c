#!/usr/bin/python3
"""churn itself: right bytes pass, one byte changed behind its back does not.  churn_test.py PATH_OF_CHURN"""

import os
import random
import re
import subprocess
import sys
import time
import unittest

CHURN = sys.argv.pop(1)


def large_anonymous_mappings(pid):
    """(first, last) of writable private mappings without a file, of a megabyte and more."""
    found = []
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        for line in maps:
            words = line.split()
            first, last = (int(word, 16) for word in words[0].split("-"))
            if len(words) == 5 and words[1] == "rw-p" and last - first >= 1 << 20:
                found.append((first, last))
    return found


def wait_until_used(pid, wanted_bytes):
    """Until so much of its memory is resident; on a busy machine that may take it a while."""
    for _ in range(400):
        with open(f"/proc/{pid}/statm", encoding="utf-8") as sizes:
            if int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >= wanted_bytes:
                return
        time.sleep(0.01)


def flip_bytes(pid, count, seed):
    """Flips a bit in each of `count` bytes of the process's memory."""
    draw = random.Random(seed)
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        mappings = large_anonymous_mappings(pid)
        for _ in range(count):
            first, last = draw.choice(mappings)
            address = draw.randrange(first, last)
            try:
                memory.seek(address)
                byte = memory.read(1)
                if not byte:
                    continue  # unmapped meanwhile: an end of file, not an error
                memory.seek(address)
                memory.write(bytes([byte[0] ^ 0x10]))
            except OSError:
                pass  # unmapped meanwhile


class Churn(unittest.TestCase):
    def test_right_bytes_pass_and_the_seed_is_printed(self):
        done = subprocess.run([CHURN, "--total", "16M", "--threads", "2", "--seconds", "0.5", "--seed", "7"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("seed 7,", done.stdout)
        self.assertRegex(done.stdout, r"every byte right: \d{3,} operations")

    def test_changed_bytes_are_found(self):
        # A flip may as well hit a stack or the allocator's own words and end the program otherwise: then again. What
        # it may never do is end well.
        for seed in range(1, 11):
            status, errors = self.run_with_flipped_bytes(seed)
            self.assertNotEqual(status, 0, f"flips of seed {seed} were not found")
            if status == 1:
                break
        self.assertEqual(status, 1, errors)
        self.assertRegex(errors, r"MISMATCH .*seed \d+")
        if "expected" in errors:
            expected, found = re.search(r"expected ([0-9a-f]{16}) .* found ([0-9a-f]{16})", errors).groups()
            self.assertIn(bin(int(expected, 16) ^ int(found, 16)).count("1"), (1, 2, 3), errors)

    def run_with_flipped_bytes(self, seed):
        """Exit status and stderr of a churn some of whose bytes were flipped; status None: it hung."""
        with subprocess.Popen([CHURN, "--total", "32M", "--threads", "2", "--seconds", "5", "--forks", "0"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            try:
                wait_until_used(process.pid, 16 << 20)
                flip_bytes(process.pid, 200, seed)
                _, errors = process.communicate(timeout=15)
                return process.returncode, errors
            except PermissionError as error:
                self.skipTest(f"no access to the memory of a child: {error}")
            except subprocess.TimeoutExpired:
                return None, "it hung"
            finally:
                process.kill()

    def test_usage(self):
        for words in (["--total", "x"], ["--total", "0"], ["--threads", "-1"], ["what"], ["--nonsense"]):
            done = subprocess.run([CHURN, *words], capture_output=True, timeout=10, check=False,
                                  env={**os.environ, "LC_ALL": "C"})
            self.assertEqual(done.returncode, 2, words)


if __name__ == "__main__":
    unittest.main()
