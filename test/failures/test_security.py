"""A server that can do no more than serve, clients that cannot take all of it, and keys that are never seen."""

import base64
import json
import os
import pwd
import stat
import subprocess
import unittest

from support import HINTERLAND, PUPPET, FailureTest, Puppet, Server

PAGES = 8192


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


class Confined(FailureTest):
    def test_serves_without_privileges_and_system_calls(self):
        server = Server(self)
        status = status_of(server.pid)
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        self.assertEqual((status["CapEff"], status["CapPrm"]), ("0" * 16, "0" * 16))
        for thread in os.listdir(f"/proc/{server.pid}/task"):
            self.assertEqual(status_of(f"{server.pid}/task/{thread}")["Seccomp"], "2", "a thread outside")
        puppet = Puppet(self, far=server.url)
        self.assertEqual(puppet.do(f"fill {PAGES}"), f"filled {PAGES}")
        self.assertEqual(puppet.do("forks 2 exit"), "children 2 bad 0")
        self.assertEqual(puppet.do(f"check 0 {PAGES}"), f"right {PAGES}")
        self.assertEqual(puppet.finish(), 0)
        server.process.terminate()
        self.assertEqual(server.process.wait(5), 0, "ends in order")

    def test_an_ordinary_users_server_shows_nothing_to_that_user(self):
        if os.geteuid() != 0:
            self.skipTest("becoming another user needs root")
        nobody = pwd.getpwnam("nobody")
        become = ("setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups")
        if subprocess.run([*become, HINTERLAND, "version"], capture_output=True, check=False).returncode != 0:
            self.skipTest("nobody cannot reach " + HINTERLAND)
        server = Server(self, prefix=become)
        # Not dumpable: what shows its memory belongs to root, and no core file is written.
        self.assertEqual(os.stat(f"/proc/{server.pid}/mem").st_uid, 0)
        looked = subprocess.run([*become, "cat", f"/proc/{server.pid}/maps"], capture_output=True, check=False)
        self.assertEqual((looked.returncode, looked.stdout), (1, b""))


class Shares(FailureTest):
    def test_a_client_takes_its_share_and_no_more(self):
        server = Server(self, "--client-memory", "32M", memory="96M")
        greedy = Puppet(self, far=server.url)
        pages = 24576  # 96 MiB
        self.assertEqual(greedy.do(f"fill {pages}"), f"filled {pages}")
        self.assertEqual(greedy.do(f"check 0 {pages}"), f"right {pages}")
        self.assert_one_message(greedy, "beyond the budget", "No space")
        for _ in range(2):  # room for two more
            other = Puppet(self, far=server.url)
            self.assertEqual(other.do("fill 6144"), "filled 6144")  # 24 MiB
            self.assertEqual(other.do("check 0 6144"), "right 6144")
            self.assertEqual(other.messages(), [])
        self.assertEqual(greedy.do(f"check 0 {pages}"), f"right {pages}")


class Secrets(FailureTest):
    KEY = "a-Secret.that_must+not/be=seen-4711"

    def key_file(self, name, key):
        path = self.path(name)
        with open(path, "w", encoding="ascii", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
            file.write(key + "\n")
        return path

    def test_the_key_is_in_no_output(self):
        key, other = self.key_file("key", self.KEY), self.key_file("other", "Wrong." + self.KEY)
        seen = {}
        errors = open(self.path("server.err"), "wb+")
        self.addCleanup(errors.close)
        process = subprocess.Popen([HINTERLAND, "serve", "-vv", "--listen", "127.0.0.1:0", "--memory", "128M",
                                    "--key-file", key], env=self.environment, stdout=subprocess.PIPE, stderr=errors)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        said = [process.stdout.readline(), process.stdout.readline()]
        url = "tcp://" + said[0].decode().split()[2].rstrip(",")
        report = self.path("report.json")
        puppet = Puppet(self, "-vv", "--key-file", key, "--report", report, far=url)
        self.assertEqual(puppet.do(f"fill {PAGES}"), f"filled {PAGES}")
        children = [int(each) for each in self.children(puppet.pid)]
        for pid in (process.pid, puppet.pid, *children):
            for name in ("cmdline", "environ", "comm"):
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    seen[f"/proc/{pid}/{name}"] = file.read()
        listed = self.call("stat", "--json").stdout
        self.assertEqual(len(json.loads(listed)["programs"]), 1)
        seen["stat --json"] = listed.encode()
        seen["stat PID"] = self.call("stat", str(children[0])).stdout.encode()
        self.assertIn(b"tcp:", seen["stat PID"])
        seen["ps"] = subprocess.run(["ps", "auxewww"], capture_output=True, check=True).stdout
        for page in self.pages_of_figures():
            with open(page, "rb") as file:
                seen[page] = file.read()
        core = self.path("core")
        written = self.call("core", "--output", core, str(children[0]))
        self.assertEqual(written.returncode, 0, written.stderr)
        with open(core, "rb") as file:
            seen["core"] = file.read()
        self.assertEqual(puppet.finish(), 0)
        seen["run -vv"] = puppet.errors().encode()
        self.assertIn(b"ended with status 0", seen["run -vv"])
        with open(report, "rb") as file:
            seen["--report"] = file.read()
        for given in (["--key-file", other], []):
            refused = self.call("run", "-vv", "--local", "8M", "--far", url, *given, "--", PUPPET)
            self.assertEqual(refused.returncode, 1, refused.stderr)
            seen[f"refused {given}"] = (refused.stdout + refused.stderr).encode()
        os.chmod(key, stat.S_IRUSR | stat.S_IRGRP)
        readable = self.call("run", "--local", "8M", "--far", url, "--key-file", key, "--", PUPPET)
        seen["readable by others"] = (readable.stdout + readable.stderr).encode()
        process.terminate()
        self.assertEqual(process.wait(5), 0)
        seen["serve"] = b"".join(said) + process.stdout.read()
        errors.seek(0)
        seen["serve -vv"] = errors.read()
        self.assertIn(b"refused", seen["serve -vv"])
        self.assert_unseen(seen)

    def assert_unseen(self, seen):
        raw = self.KEY.encode()
        # The last bytes are left out: what is in front of the key changes how they are written.
        forms = {raw, raw.hex().encode(), base64.b64encode(raw)[:40], raw[:16], raw[-16:]}
        for where, text in seen.items():
            for form in forms:
                self.assertNotIn(form, text, where)
        self.assertGreater(sum(map(len, seen.values())), 3000)

    @staticmethod
    def children(pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return file.read().split()

    def pages_of_figures(self):
        found = [os.path.join(folder, name) for folder, _, names in os.walk(self.figures_folder) for name in names]
        self.assertEqual(len(found), 1)
        return found


if __name__ == "__main__":
    unittest.main()
