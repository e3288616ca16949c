"""file: on a disk that is full or fails. There is no device mapper everywhere, so the failing disk is a loop device
that loses its end while it is used: requests beyond fail."""

import os
import shutil
import subprocess
import time
import unittest

from support import HINTERLAND, FailureTest, Puppet, record
from test_devices import caught_of

PAGES = 8192


class Disk(FailureTest):
    def in_file_system(self, script):
        """Words that run a command where `script` has mounted what it needs; $0 is the folder."""
        if os.geteuid() != 0:
            raise unittest.SkipTest("mounting needs root")
        words = ("unshare", "-m", "--propagation", "private", "sh", "-c", script + ' && exec "$@"', self.folder)
        probe = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
        if probe.returncode != 0:
            raise unittest.SkipTest("cannot be mounted here: " + probe.stderr)
        return words

    def inside(self, puppet, name):
        """The path of a file that only the puppet sees."""
        return f"/proc/{puppet.pid}/root{self.folder}/{name}"

    def fill_up(self, path):
        with open(path, "wb", buffering=0) as file:
            try:
                while file.write(bytes(1 << 16)):
                    pass
            except OSError:
                return file.tell()

    def use_and_check(self, puppet):
        for _ in range(2):
            self.assertEqual(puppet.do(f"check 0 {PAGES}"), f"right {PAGES}")
            self.assertEqual(puppet.do(f"rewrite 0 {PAGES}"), f"rewritten {PAGES}")
        self.assertEqual(puppet.do(f"check 0 {PAGES}"), f"right {PAGES}")
        self.assertEqual(puppet.finish(), 0)

    def test_where_proc_is_not_mounted(self):
        prefix = self.in_file_system('mkdir -p "$0/none" && mount --bind "$0/none" /proc')
        for local, what in ((), "/proc/meminfo cannot be read"), (("--local", "64M"), "where this command is"):
            done = subprocess.run([*prefix, HINTERLAND, "run", *local, "--", "true"], capture_output=True, text=True,
                                  check=False, timeout=60)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(what, done.stderr)
            self.assertIn("mount /proc", done.stderr)

    def test_filled_up_by_others_after_the_start(self):
        prefix = self.in_file_system('mount -t tmpfs -o size=80M none "$0"')
        puppet = Puppet(self, far=f"file:{self.path('far')}?size=64M", prefix=prefix)
        self.fill_up(self.inside(puppet, "others"))
        self.assertEqual(puppet.do(f"fill {PAGES}"), f"filled {PAGES}")
        self.use_and_check(puppet)
        self.assertEqual(puppet.messages(), [], "the space was reserved")

    def test_full_where_nothing_can_be_reserved(self):
        if not shutil.which("mkfs.ext2"):
            self.skipTest("mkfs.ext2 (e2fsprogs) is not there")
        image = self.path("image")
        with open(image, "wb") as file:
            file.truncate(48 << 20)
        subprocess.run(["mkfs.ext2", "-q", "-F", "-m", "0", image], check=True)
        os.mkdir(self.path("disk"))
        prefix = self.in_file_system('mount -o loop -t ext2 "$0/image" "$0/disk"')
        puppet = Puppet(self, far=f"file:{self.path('disk/far')}?size=32M", prefix=prefix)
        self.fill_up(self.inside(puppet, "disk/others"))
        start = time.monotonic()
        self.assertEqual(puppet.do(f"fill {PAGES}"), f"filled {PAGES}")
        record("disk full", "survives beyond the budget, one message", time.monotonic() - start)
        self.use_and_check(puppet)
        self.assert_one_message(puppet, "file:", "beyond the budget")

    def puppet_on_disk(self):
        """On a block device of 64 MiB; and a call that takes away all but the first bytes of the device."""
        if os.geteuid() != 0 or not shutil.which("losetup"):
            self.skipTest("a loop device needs root, and losetup")
        image = self.path("image")
        with open(image, "wb") as file:
            file.truncate(64 << 20)
        made = subprocess.run(["losetup", "--show", "-f", image], check=False, capture_output=True, text=True)
        if made.returncode != 0:
            self.skipTest("no loop device: " + made.stderr)
        device = made.stdout.strip()
        self.addCleanup(subprocess.run, ["losetup", "-d", device], check=False)

        def cut_to(size):
            os.truncate(image, size)
            subprocess.run(["losetup", "-c", device], check=True)

        return Puppet(self, far=f"file:{device}"), cut_to

    def test_writes_fail(self):
        puppet, cut_to = self.puppet_on_disk()
        cut_to(12 << 20)
        start = time.monotonic()
        self.assertEqual(puppet.do(f"fill {PAGES}"), f"filled {PAGES}")
        record("disk: writes fail", "survives beyond the budget, one message", time.monotonic() - start)
        self.use_and_check(puppet)
        self.assert_one_message(puppet, "file:", "beyond the budget")

    def test_reads_fail(self):
        puppet, cut_to = self.puppet_on_disk()
        self.assertEqual(puppet.do(f"fill {PAGES}"), f"filled {PAGES}")
        cut_to(8 << 20)
        start = time.monotonic()
        caught, right, wrong, elsewhere = caught_of(puppet.do(f"catch 0 {PAGES}"))
        record("disk: reads fail", "SIGBUS and a message for each page lost", time.monotonic() - start)
        self.assertGreater(caught, PAGES // 4)
        self.assertEqual((caught + right, wrong, elsewhere), (PAGES, 0, 0))
        self.assertEqual(len(puppet.messages()), caught + (1 if "beyond" in puppet.errors() else 0))
        self.assertEqual(puppet.do("unmap"), "unmapped")
        self.assertEqual(puppet.do("fill 100"), "filled 100")
        self.assertEqual(puppet.finish(), 0)


if __name__ == "__main__":
    unittest.main()
