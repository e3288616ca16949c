#!/usr/bin/python3
"""swap_baseline against a machine of words: it refuses what it must not touch, and puts everything back."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import swap_baseline as swap  # noqa: E402
from benchlib import decoys, disk  # noqa: E402
from fake_system import HEADER, FakeDisk, FakeSystem  # noqa: E402

FOLDER = "/a disk"


class WithFake(unittest.TestCase):
    def setUp(self):
        patched = mock.patch.object(swap.time, "sleep")
        patched.start()
        self.addCleanup(patched.stop)
        self.use(FakeSystem())

    def use(self, system):
        self.system, self.baseline = system, swap.Baseline(system)
        self.before = system.state()

    def assert_as_before(self):
        self.assertEqual(self.system.state(), self.before)


class Refusal(WithFake):
    def refused(self, words):
        self.before = self.system.state()
        with self.assertRaisesRegex(swap.Unavailable, words):
            with self.baseline.limited(1 << 20, 1 << 22, 0):
                self.fail("it was set up")
        self.assertEqual(self.system.log, [], "something was touched")
        self.assert_as_before()

    def test_not_root(self):
        self.system.root = False
        self.refused("only root")

    def test_swap_that_is_on(self):
        self.system.files["/proc/swaps"] = f"{HEADER}\n/dev/sda2 partition 1 0 -2"
        self.refused("swap is on already")

    def test_zram_in_use(self):
        self.system.files[f"{swap.ZRAM_SETTINGS}/disksize"] = "4096"
        self.refused("in use, and is not touched")

    def test_no_zram(self):
        del self.system.files[swap.ZRAM]
        self.refused("modprobe zram")

    def test_no_cgroup(self):
        self.use(FakeSystem(version=None))
        self.refused("no memory cgroup")

    def test_cgroup_without_memory(self):
        self.use(FakeSystem(version=2))
        self.system.files[f"{swap.CGROUP}/cgroup.subtree_control"] = "cpu"
        self.refused("does not hand out memory")

    def test_left_behind_by_a_killed_run(self):
        self.system.files[swap.RECORD] = '{"pid": 999999, "start": "5", "standing": {}}'
        self.refused("swap_baseline.py clean")

    def test_set_up_by_another_process(self):
        self.system.files["/proc/77/stat"] = FakeSystem.stat(5)
        self.system.files[swap.RECORD] = '{"pid": 77, "start": "5", "standing": {}}'
        self.refused("process 77")

    def test_damaged_record(self):
        self.system.files[swap.RECORD] = "{"
        self.refused("damaged")


class FileRefusal(WithFake):
    def refused(self, words):
        self.before = self.system.state()
        with self.assertRaisesRegex(swap.Unavailable, words):
            with self.baseline.limited(1 << 20, 1 << 30, 0, FOLDER):
                self.fail("it was set up")
        self.assertEqual(self.system.log, [], "something was touched")
        self.assert_as_before()

    def test_not_root(self):
        self.system.root = False
        self.refused("only root")

    def test_swap_that_is_on(self):
        self.system.files["/proc/swaps"] = f"{HEADER}\n/swapfile file 1 0 -2"
        self.refused("swap is on already")

    def test_no_cgroup(self):
        self.use(FakeSystem(version=None))
        self.refused("no memory cgroup")

    def test_file_systems_that_are_not_safe(self):
        for kind in ("tmpfs", "overlay", "btrfs", "nfs4"):
            self.system.disk = FakeDisk(kind)
            self.refused(f"on {kind}, and a swap file needs .*--disk-folder")
        self.system.disk = FakeDisk(devices=())
        self.refused("on a disk")

    def test_devices_over_which_swap_can_stop_the_kernel(self):
        for name in ("loop0", "zram1", "ram0", "nbd12", "drbd3"):
            self.system.disk = FakeDisk(devices=("sys", "devices", "virtual", "block", "dm-0", name))
            self.refused(f"is on {name}, .*can stop the kernel")

    def test_too_little_room(self):
        self.system.disk = FakeDisk(free_bytes=1 << 30)
        self.refused("MiB free, and .*smaller --size")

    def test_a_file_of_that_name_is_not_touched(self):
        self.system.files[f"{FOLDER}/hinterland-swap-{os.getpid()}"] = "somebody's"
        self.refused("exists, and is not touched")

    def test_zram_in_use_does_not_matter(self):
        self.system.files[f"{swap.ZRAM_SETTINGS}/disksize"] = "4096"
        self.baseline.check(FOLDER)


class FileSwap(WithFake):
    path = f"{FOLDER}/hinterland-swap-{os.getpid()}"

    def test_set_up_and_taken_down(self):
        with self.baseline.limited(1 << 20, 1 << 22, 3, FOLDER):
            self.assertIn(("make_file", self.path, 1 << 22), self.system.log)
            self.assertIn("/a\\040disk/hinterland-swap", self.system.files["/proc/swaps"])
            self.assertEqual(self.system.files[swap.PAGE_CLUSTER], "3")
            self.assertIn(self.path, self.system.files[swap.RECORD])
        self.assertIn(("swapoff", self.path), self.system.log)
        self.assert_as_before()

    def test_every_step_that_fails_takes_down_the_others(self):
        for step in ("make_file", "mkswap", "swapon", "mkdir"):
            self.use(FakeSystem())
            self.system.fail = {step}
            with self.assertRaises(swap.Unavailable, msg=step):
                with self.baseline.limited(1 << 20, 1 << 22, 0, FOLDER):
                    self.fail("it was set up")
            self.assert_as_before()

    def test_whatever_ends_the_block_takes_everything_down(self):
        for ending in (ValueError, KeyboardInterrupt, SystemExit):
            with self.assertRaises(ending):
                with self.baseline.limited(1 << 20, 1 << 22, 0, FOLDER):
                    raise ending
            self.assert_as_before()

    def test_what_cannot_be_taken_down_is_said_and_a_second_try_does_it(self):
        with self.assertRaisesRegex(swap.LeftBehind, f"By hand: swapoff {self.path}; rm {self.path}"):
            with self.baseline.limited(1 << 20, 1 << 22, 0, FOLDER):
                self.system.fail = {"swapoff"}
        self.assertIn(self.path, self.system.files, "a file that is swapped to must not be removed")
        self.system.fail = set()
        self.baseline.take_down_all()
        self.assert_as_before()

    def test_clean_after_a_kill(self):
        with mock.patch.object(swap.Baseline, "_take_down"), mock.patch.object(swap.Baseline, "_write_record"):
            with self.baseline.file_swap(FOLDER, 1 << 22):
                standing = dict(self.baseline._standing)
        self.system.files[swap.RECORD] = swap.json.dumps({"pid": 4711, "start": "8", "standing": standing})
        self.assertEqual(swap.Baseline(self.system).clean(), "taken down: swap_file")
        self.assert_as_before()


class RealFolder(unittest.TestCase):
    """What the kernel of this machine says."""

    def test_memory_is_no_disk(self):
        for path in ("/dev/shm", "/proc"):
            with self.assertRaises(disk.Unfit, msg=path):
                disk.check_swap_folder(path)

    def test_no_such_folder(self):
        for check in (disk.check_swap_folder, lambda path: disk.check_free(path, 1)):
            with self.assertRaisesRegex(disk.Unfit, "No such file"):
                check("/no/such/folder")

    def test_a_file_without_holes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "file")
            swap.System().make_file(path, 1 << 20)
            about = os.stat(path)
            self.assertEqual((about.st_size, about.st_mode & 0o777), (1 << 20, 0o600))
            self.assertGreaterEqual(about.st_blocks * 512, 1 << 20)
            with self.assertRaises(FileExistsError):
                swap.System().make_file(path, 1 << 20)


class RealDecoys(unittest.TestCase):
    """In a cgroup without swap: what the kernel kills there first, and what is left in the end."""
    LIMIT = 16 << 20
    # Several that take together what there is not; each is far smaller than what a decoy is taken for.
    HUNGRY = ("echo there; read line; for each in 1 2 3 4 5 6 7 8; do "
              f"head -c {LIMIT // 2} /dev/zero | tail -c {LIMIT // 2} >/dev/null & done; wait")

    def setUp(self):
        self.baseline = swap.Baseline()
        try:
            self.baseline.cgroup_version()
            # Alone, not by limited(): no swap is set up here.
            self.limit = self.baseline.memory_limit(self.LIMIT)
            self.words = self.limit.__enter__()
        except (swap.Unavailable, OSError) as reason:
            self.skipTest(f"no cgroup: {reason}")
        self.addCleanup(self.limit.__exit__, None, None, None)
        self.procs = self.words[2].partition("echo $$ >")[2].partition(" ")[0]

    def members(self):
        with open(self.procs, encoding="ascii") as file:
            return {int(pid) for pid in file.read().split()}

    def usage(self):
        name = "memory.usage_in_bytes" if self.baseline.cgroup_version() == 1 else "memory.current"
        with open(os.path.join(os.path.dirname(self.procs), name), encoding="ascii") as file:
            return int(file.read())

    def test_they_are_killed_first_and_cost_nothing(self):
        before = self.members()
        self.assertEqual(len(before), decoys.AT_ONCE)
        self.assertLess(self.usage(), 1 << 20, "their memory must not be taken from the program")
        with subprocess.Popen([*self.words, "/bin/sh", "-c", self.HUNGRY], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as program:
            self.assertEqual(program.stdout.readline(), b"there\n")
            self.assertEqual(self.members() - before, {program.pid}, "nobody was killed yet")
            program.communicate(b"\n")
        self.limit.__exit__(None, None, None)
        self.assertGreaterEqual(self.baseline.kills_diverted, decoys.AT_ONCE)
        self.assertFalse(os.path.exists(os.path.dirname(self.procs)))

    def test_those_that_are_killed_are_replaced_but_not_for_ever(self):
        killed = set()
        with mock.patch.object(decoys, "LOST_MAX", 3 * decoys.AT_ONCE):
            end = time.monotonic() + 20
            while len(killed) < 3 * decoys.AT_ONCE and time.monotonic() < end:
                for pid in self.members() - killed:
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)
                threading.Event().wait(0.002)
            threading.Event().wait(0.1)
            self.assertEqual(self.members(), set())
        self.limit.__exit__(None, None, None)
        self.assertEqual((self.baseline.kills_diverted, len(killed)), (3 * decoys.AT_ONCE, 3 * decoys.AT_ONCE))

    def test_none_is_left(self):
        there = self.members()
        self.limit.__exit__(None, None, None)
        for pid in there:
            self.assertFalse(os.path.exists(f"/proc/{pid}"))
        self.assertEqual(self.baseline.kills_diverted, 0)


class SettingUp(WithFake):
    def test_version_1(self):
        folder = f"{swap.CGROUP}/memory/hinterland-{os.getpid()}"
        with self.baseline.limited(1 << 20, 1 << 22, 3) as words:
            self.assertEqual(self.system.files[f"{folder}/memory.limit_in_bytes"], str(1 << 20))
            self.assertEqual(self.system.files[f"{swap.ZRAM_SETTINGS}/disksize"], str(1 << 22))
            self.assertEqual(self.system.files[swap.PAGE_CLUSTER], "3")
            self.assertIn(swap.ZRAM, self.system.files["/proc/swaps"])
            self.assertIn("[lz4]", self.system.files[f"{swap.ZRAM_SETTINGS}/comp_algorithm"])
            self.assertIn(f"{folder}/cgroup.procs", words[2])
            self.assertIn(swap.RECORD, self.system.files)
        self.assert_as_before()

    def test_there_are_decoys_while_the_program_may_run(self):
        for version in (1, 2):
            self.use(FakeSystem(version))
            with self.baseline.memory_limit(50 << 20) as words:
                procs = next(path for path in self.system.files if path.endswith("/cgroup.procs"))
                self.assertEqual(self.system.log[-1], ("decoys", procs))
                self.assertIn(procs, words[2])
            self.assertEqual(self.system.log[-1], ("no decoys", procs))
            self.assertEqual(self.baseline.kills_diverted, 3)

    def test_version_2(self):
        self.use(FakeSystem(version=2))
        with self.baseline.limited(1 << 20, 1 << 22, 0):
            self.assertEqual(self.system.files[f"{swap.CGROUP}/hinterland-{os.getpid()}/memory.max"], str(1 << 20))
        self.assert_as_before()

    def test_twice_in_turn_but_not_at_once(self):
        for _ in range(2):
            with self.baseline.limited(1 << 20, 1 << 22, 0):
                with self.assertRaises(swap.Unavailable):
                    with self.baseline.limited(1 << 20, 1 << 22, 0):
                        self.fail("it was set up twice")
                self.assertIn(swap.ZRAM, self.system.files["/proc/swaps"])
            self.assert_as_before()

    def test_every_step_that_fails_takes_down_the_others(self):
        limit = f"{swap.CGROUP}/memory/hinterland-{os.getpid()}/memory.limit_in_bytes"
        for step in ("mkswap", "swapon", "mkdir", limit, f"{swap.ZRAM_SETTINGS}/disksize"):
            self.use(FakeSystem())
            self.system.fail = {step}
            with self.assertRaises(swap.Unavailable, msg=step):
                with self.baseline.limited(1 << 20, 1 << 22, 0):
                    self.fail("it was set up")
            self.assert_as_before()

    def test_whatever_ends_the_block_takes_everything_down(self):
        for ending in (ValueError, KeyboardInterrupt, SystemExit):
            with self.assertRaises(ending):
                with self.baseline.limited(1 << 20, 1 << 22, 0):
                    raise ending
            self.assert_as_before()

    def test_processes_left_in_the_cgroup_are_killed(self):
        with self.baseline.memory_limit(1 << 20):
            self.system.files[f"{swap.CGROUP}/memory/hinterland-{os.getpid()}/cgroup.procs"] = "4242 4243"
        self.assertEqual(self.system.killed, [4242, 4243])
        self.assert_as_before()


class LeftBehind(WithFake):
    def stuck(self):
        """A block at whose end swapoff does not work."""
        with self.assertRaisesRegex(swap.LeftBehind, "By hand: swapoff /dev/zram0"):
            with self.baseline.limited(1 << 20, 1 << 22, 0):
                self.system.fail = {"swapoff"}

    def test_what_cannot_be_taken_down_is_said_and_noted(self):
        self.stuck()
        self.assertEqual(self.system.files[swap.PAGE_CLUSTER], "5", "the rest was taken down")
        self.assertEqual(self.system.folders, set())
        self.assertIn(swap.RECORD, self.system.files)

    def test_a_second_try_takes_it_down(self):
        self.stuck()
        self.system.fail = set()
        self.baseline.take_down_all()
        self.assert_as_before()

    def test_clean_after_a_kill(self):
        with mock.patch.object(swap.Baseline, "_take_down"), mock.patch.object(swap.Baseline, "_write_record"):
            with self.baseline.zram_swap(1 << 22):
                with self.baseline.page_cluster(0):
                    standing = dict(self.baseline._standing)
        record = swap.json.dumps({"pid": 4711, "start": "8", "standing": standing})
        self.system.files[swap.RECORD] = record
        self.system.files["/proc/4711/stat"] = FakeSystem.stat(8)
        with self.assertRaisesRegex(swap.Unavailable, "still runs"):
            swap.Baseline(self.system).clean()
        self.system.files["/proc/4711/stat"] = FakeSystem.stat(9)  # another process has its number now
        self.assertEqual(swap.Baseline(self.system).clean(), "taken down: zram, page_cluster")
        del self.system.files["/proc/4711/stat"]
        self.assert_as_before()
        self.assertIn("nothing", swap.Baseline(self.system).clean())


if __name__ == "__main__":
    unittest.main()
