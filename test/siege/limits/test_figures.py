"""The folder of the figures, when another user was there first."""

import os
import shutil
import subprocess
import unittest

from command import CommandTest, HINTERLAND

VICTIM, STRANGER = 12345, 12346


class Folder(CommandTest):
    def setUp(self):
        super().setUp()
        self.folder = self.environment["HINTERLAND_STAT_DIR"] = self.path("stats")
        os.mkdir(self.folder, 0o700)

    def no_hang(self, *arguments, **options):
        """The command's end. One that waits for a writer of the FIFO would never come to it."""
        return self.call(*arguments, timeout=30, **options)

    def test_a_fifo_there_is_no_page_and_nobody_waits_for_it(self):
        run = os.path.join(self.folder, "run-1-1-1")
        os.mkdir(run, 0o700)
        for folder in (self.folder, run):
            os.mkfifo(os.path.join(folder, "4711"))
            os.mkfifo(os.path.join(folder, "4711-4026531836"))
        self.assertEqual(self.no_hang("stat").returncode, 0)
        self.assertIn("4711", self.no_hang("stat", "4711").stderr)
        self.assertEqual(self.no_hang("tune", str(os.getpid()), "--local", "64M").returncode, 1)
        self.assertEqual(self.no_hang("core", str(os.getpid())).returncode, 1)

    def test_a_program_runs_beside_a_fifo(self):
        self.need_library()
        os.mkfifo(os.path.join(self.folder, "4711"))
        done = self.no_hang("run", "-v", "--", "/bin/true")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_links_are_not_followed(self):
        elsewhere = self.path("elsewhere")
        os.mkdir(elsewhere, 0o700)
        for name in ("4711", "rings"):
            os.mkdir(os.path.join(elsewhere, name)) if name == "rings" else self.write("elsewhere/" + name, "mine")
        self.write("elsewhere/rings/4711.0", "mine")
        os.symlink(elsewhere, os.path.join(self.folder, "run-1-1"))
        self.assertEqual(self.call("stat").returncode, 0)
        os.rename(self.folder, self.path("moved"))
        os.symlink(elsewhere, self.folder)
        for command in (["stat"], ["run", "-v", "--", "true"]):
            if command[0] == "run":
                self.need_library()
            self.assert_refused(1, "not a folder of yours alone", "--stat-dir", arguments=command)
        self.assertEqual(sorted(os.listdir(elsewhere)), ["4711", "rings"])
        self.assertEqual(os.listdir(os.path.join(elsewhere, "rings")), ["4711.0"])


@unittest.skipIf(os.geteuid() != 0, "two users: needs root to be them")
class Strangers(CommandTest):
    def setUp(self):
        super().setUp()
        os.chmod(self.directory, 0o711)
        os.mkdir(self.path("bin"), 0o755)
        self.command = shutil.copy(HINTERLAND, self.path("bin"))  # where the victim may read it
        self.folder = self.environment["HINTERLAND_STAT_DIR"] = self.path("stats")
        os.mkdir(self.folder, 0o755)
        os.mkfifo(os.path.join(self.folder, "4711"))
        os.chown(self.folder, STRANGER, STRANGER)

    def call_as_victim(self, *arguments, **variables):
        return subprocess.run([self.command, *arguments], env=dict(self.environment, **variables), user=VICTIM,
                              group=VICTIM, extra_groups=[], cwd="/", timeout=30, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)

    def test_the_folder_of_another_is_refused_and_the_way_out_is_said(self):
        for command in (["stat"], ["stat", "4711"], ["tune", "4711", "--local", "64M"]):
            done = self.call_as_victim(*command)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("not a folder of yours alone", done.stderr)
            self.assertIn("--stat-dir", done.stderr)

    def test_root_runs_nothing_in_the_folder_of_another(self):
        self.need_library()
        self.assert_refused(1, "not a folder of yours alone", arguments=["run", "-v", "--", "true"])
        done = self.call("run", "--", "sh", "-c", "true; true", timeout=30)  # nobody asked for figures
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("without figures"), 1, done.stderr)
        self.assertEqual(os.listdir(self.folder), ["4711"])

    def test_root_may_look_there(self):
        self.assertEqual(self.call("stat", timeout=30).returncode, 0)

    def test_the_runtime_directory_of_the_user_comes_first(self):
        own = self.path("own")
        os.mkdir(own, 0o700)
        os.chown(own, VICTIM, VICTIM)
        del self.environment["HINTERLAND_STAT_DIR"]
        os.mkdir(os.path.join(own, "hinterland"), 0o777)
        os.chmod(os.path.join(own, "hinterland"), 0o777)
        done = self.call_as_victim("stat", XDG_RUNTIME_DIR=own)
        self.assertIn(own + "/hinterland, for the figures", done.stderr)  # it was looked at
        os.chmod(own, 0o755)
        self.assertEqual(self.call_as_victim("stat", XDG_RUNTIME_DIR=own).returncode, 0)


if __name__ == "__main__":
    unittest.main()
