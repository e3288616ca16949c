"""Bad input: one clear message on stderr, exit status 2 (usage), 1 (environment), 126 or 127, nothing started."""

import os
import socket
import subprocess
import threading
import unittest

from command import CommandTest, HINTERLAND


class Usage(CommandTest):
    def refused(self, arguments, *words, **variables):
        self.assert_refused(2, *words, arguments=arguments, **variables)

    def test_unknown_names_come_with_the_nearest(self):
        self.refused(["rnu"], "no command 'rnu'", "did you mean 'run'")
        self.refused(["run", "--polcy", "fifo", "--", "true"], "--polcy", "did you mean '--policy'")
        self.refused(["run", "--policy", "fifi", "--", "true"], "fifi", "did you mean 'fifo'")
        self.refused(["run", "--fault", "signals", "--", "true"], "signals", "did you mean 'signal'")
        self.refused(["run", "--far", "zmme:", "--", "true"], "zmme", "zmem")
        self.refused(["run", "--far", "zmem:lz5", "--", "true"], "lz5", "lz4")
        self.refused(["run", "--without", "moev", "--", "true"], "moev", "move")
        self.refused(["help", "stta"], "did you mean 'stat'")
        self.refused(["stat", "--format", "openmetric"], "did you mean 'openmetrics'")
        self.refused(["stat", "--json", "--format", "openmetrics"], "contradict each other")
        self.refused(["run", "--", "true"], "HINTERLAND_POLICY", "did you mean", HINTERLAND_POLICY="fif")

    def test_sizes(self):
        for size in ["0", "-1", "-64M", "", "M", "12Q", "64 quux", "1.5", "999999T", "18446744073709551616", "0x10",
                     "nan", "101%", "0%"]:
            with self.subTest(size=size):
                self.refused(["run", "--local", size, "--", "true"], "--local")

    def test_a_budget_below_the_minimum_states_it(self):
        self.refused(["run", "--local", "1M", "--", "true"], "minimum is 4M")
        self.refused(["run", "--", "true"], "HINTERLAND_LOCAL", "minimum is 4M", HINTERLAND_LOCAL="4095K")

    def test_numbers_and_times(self):
        self.refused(["run", "--read-ahead", "65", "--", "true"], "maximum is 64")
        self.refused(["run", "--read-ahead", "many", "--", "true"], "whole number")
        self.refused(["run", "--timeout", "5 parsecs", "--", "true"], "is not a time")
        self.refused(["run", "--timeout", "1ns", "--", "true"], "too small")

    def test_missing_things(self):
        self.refused([], "no command given")
        self.refused(["run"], "no program given")
        self.refused(["run", "--local", "64M"], "no program given")
        self.refused(["run", "--"], "no program given")
        self.refused(["run", "--local"], "--local needs a value")
        self.refused(["run", "--report", "--json", "--", "true"], "--report needs a value, and '--json' is none")
        self.refused(["run", "--local", "--", "true"], "--local needs a value, and '--' is none")
        self.refused(["core", "-o", "--live", "1"], "-o needs a value")
        self.assertFalse(os.path.exists("--json"))
        self.refused(["tune"], "no process id")
        self.refused(["tune", "1"], "--local is missing")
        self.refused(["tune", "1"], "--local is missing", HINTERLAND_LOCAL="64M")

    def test_too_much(self):
        self.refused(["run", "--local", "64M", "--local", "65M", "--", "true"], "given twice")
        self.refused(["doctor", "now"], "unexpected argument 'now'")
        self.refused(["serve", "now"], "unexpected argument 'now'")
        self.refused(["stat", "1", "2"], "unexpected argument '2'")
        self.refused(["stat", "--kinds"], "no process id given")
        self.refused(["stat", "--kinds", "1", "--watch", "2s"], "--kinds is one look at one program")
        self.refused(["stat", "redis"], "not a process id")
        self.refused(["stat", "-5"], "-5")
        self.refused(["help", "serve", "run"], "unexpected argument 'run'")
        self.refused(["serve", "--", "--memory=16M"], "unexpected argument '--memory=16M'")

    def test_flags_take_no_value(self):
        """Of every command, every option whose help names none."""
        listing = self.call("help").stdout.split("Commands:")[1].split("\n\n")[0]
        seen = 0
        for command in [line.split()[0] for line in listing.strip().splitlines()]:
            if command in ("cc", "help", "version"):
                continue
            for line in self.call("help", command).stdout.splitlines():
                words = line.split()
                if not line.startswith("  -") or len(words) == 0:
                    continue
                names = [word.rstrip(",") for word in words[:2] if word.startswith("-")]
                if len(words) > len(names) and words[len(names)].isupper():
                    continue
                for name in names:
                    with self.subTest(command=command, name=name):
                        self.refused([command, name + "=3"], name + " takes no value, and '3' is one")
                        self.refused([command, name + "="], name + " takes no value")
                        seen += 1
        self.assertGreater(seen, 20)
        self.refused(["serve", "--no-offload=true", "--memory", "16M"], "--no-offload takes no value")

    def test_contradictions(self):
        self.refused(["run", "-q", "-v", "--", "true"], "contradict")
        self.refused(["run", "--take", "move", "--without", "move", "--", "true"], "contradict")
        self.refused(["run", "--take", "protect", "--without", "write-protect", "--", "true"], "contradict")
        self.refused(["run", "--local", "2G", "--window", "1G", "--", "true"], "contradict")
        self.refused(["run", "--key-file", "k", "--far", "mem:", "--", "true"], "contradict")
        self.refused(["run", "--fault", "signal", "--core", "c", "--", "true"], "contradict")
        self.refused(["run", "--force", "--", "true"], "--report")
        self.refused(["serve", "--insecure", "--key-file", "k"], "contradict")

    def test_empty_values(self):
        """A shell variable that is empty by mistake is not "not given"."""
        for option in ["--core", "--without", "--report", "--stat-dir", "--config", "--key-file", "--far", "--local"]:
            with self.subTest(option=option):
                self.refused(["run", option, "", "--", "true"], option)
                self.refused(["run", option + "=", "--", "true"], option)
        self.refused(["serve", "--listen", ""], "HOST:PORT")
        self.refused(["trace", "-o", "", "--", "true"], "--output")
        self.refused(["report", "--folded", "", "x.trace"], "--folded")
        self.refused(["run", "--without", "move,", "--", "true"], "--without")
        self.refused(["run", "--without", ",", "--", "true"], "--without")
        path = self.write("far.toml", 'core = ""\n')
        self.refused(["run", "--config", path, "--", "true"], "line 1", "core", "empty")

    def test_parameters_of_a_url(self):
        for url in ["mem:?size=1G&size=2G", "zmem:?size=1G&size=1G", "file:/no/far?size=1G&size=2G"]:
            self.refused(["run", "--far", url, "--", "true"], "size is given twice")
        self.refused(["run", "--far", "sim:latency=1us,latency=2us", "--", "true"], "latency is given twice")
        for url in ["mem:?", "mem:?size=1G&", "file:/no/far?", "sim:latency=1us,", "mem:?size="]:
            with self.subTest(url=url):
                self.refused(["run", "--far", url, "--", "true"])

    def test_listen_address(self):
        for address in ["7700", "localhost", ":1", "127.0.0.1:70000", "::1:80", "127.0.0.1:"]:
            with self.subTest(address=address):
                self.refused(["serve", "--listen", address], "HOST:PORT")


class ConfigFile(CommandTest):
    def refused(self, text, *words):
        path = self.write("far.toml", text)
        self.assert_refused(2, "far.toml", *words, arguments=["run", "--config", path, "--", "true"])

    def test_missing_unreadable_or_a_directory(self):
        for path in [self.path("none.toml"), self.directory]:
            self.assert_refused(2, path, "cannot be read", arguments=["run", "--config", path, "--", "true"])
        if os.geteuid() != 0:
            path = self.write("secret.toml", "", 0)
            self.assert_refused(2, path, "Permission", arguments=["run", "--config", path, "--", "true"])

    def test_malformed_names_the_line(self):
        self.refused('local = "64M"\nfar = \n', "line 2")
        self.refused("[[[", "line 1")
        self.refused(b"\xff\xfe\x00", "line 1")

    def test_unknown_key_with_the_nearest(self):
        self.refused('local = "64M"\n\npolicey = "fifo"\n', "line 3", "policey", "did you mean 'policy'")
        self.refused('config = "x"\n', "line 1", "config")

    def test_wrong_values(self):
        self.refused('local = "1M"\n', "line 1", "minimum is 4M")
        self.refused("local = true\n", "line 1", "wrong kind")
        self.refused("without = [1]\n", "line 1")
        self.refused("quiet = 7\n", "line 1")
        self.refused("policy = 1979-05-27\n", "line 1", "wrong kind")

    def test_flags_override_variables_override_the_file(self):
        path = self.write("far.toml", 'policy = "nonsense"\n')
        self.assert_refused(2, "HINTERLAND_POLICY", "worse", arguments=["run", "--config", path, "--", "true"],
                            HINTERLAND_POLICY="worse")
        self.assert_refused(2, "--policy", "worst", arguments=["run", "--config", path, "--policy", "worst", "true"],
                            HINTERLAND_POLICY="worse")


class NoFiles(CommandTest):
    """What is no regular file is refused wherever a file is read, and nobody waits for it."""

    def places(self):
        os.mkfifo(self.path("fifo"))
        return [self.path("fifo"), "/dev/zero", "/dev/random", self.directory]

    def refused(self, status, *arguments):
        done = self.call(*arguments, timeout=30)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn("not a regular file", done.stderr)
        self.assertGreaterEqual(len(done.stderr.strip().splitlines()), 2, "no next step: " + done.stderr)

    def test_configuration(self):
        for place in self.places():
            with self.subTest(place=place):
                self.refused(2, "run", "--config", place, "--", "true")
                self.refused(2, "serve", "--config", place)
        with open(self.path("large"), "wb") as file:
            file.truncate(1 << 40)
        self.assert_refused(2, "1.00 TiB", arguments=["run", "--config", self.path("large"), "--", "true"])

    def test_keys(self):
        for place in self.places():
            with self.subTest(place=place):
                self.refused(1, "serve", "--key-file", place)

    def test_traces(self):
        for place in self.places():
            with self.subTest(place=place):
                for command in ["report", "replay", "advise"]:
                    self.refused(1, command, place)

    def test_programs(self):
        os.mkfifo(self.path("program"), 0o755)
        os.chmod(self.path("program"), 0o755)
        self.assertEqual(self.call("run", "--", self.path("program"), timeout=30).returncode, 126)
        script = self.write("script", "#!" + self.path("program") + "\n", 0o755)
        self.assertEqual(self.call("run", "--", script, timeout=30).returncode, 127)


class Programs(CommandTest):
    def test_not_found(self):
        self.assert_refused(127, "no-such-program", arguments=["run", "--", "no-such-program"])
        self.assert_refused(127, "./no", arguments=["run", "--", "./no"])
        self.assert_refused(127, "interpreter", "/no/such",
                            arguments=["run", "--", self.write("script", "#!/no/such\n", 0o755)])

    def test_not_executable(self):
        self.assert_refused(126, "chmod +x", arguments=["run", "--", self.write("plain", "x", 0o600)])
        self.assert_refused(126, "directory", arguments=["run", "--", self.directory])
        self.assert_refused(126, "#!", arguments=["run", "--", self.write("text", "words", 0o755)])
        self.assert_refused(126, "cut short", arguments=["run", "--", self.write("cut", b"\x7fELF\x02\x01\x01", 0o755)])

    def compile(self, name, *flags):
        source = self.write("main.c", '#include <stdio.h>\nint main(void) { puts("native"); return 3; }\n')
        try:
            subprocess.run(["cc", source, "-o", self.path(name), *flags], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as problem:
            self.skipTest("no compiler for " + " ".join(flags) + ": " + str(problem))
        return self.path(name)

    def test_static_program_is_refused_unless_best_effort(self):
        program = self.compile("static", "-static")
        self.assert_refused(1, "statically linked", "--best-effort", arguments=["run", "--", program])
        done = self.call("run", "--best-effort", "--", program)
        self.assertEqual((done.returncode, done.stdout), (3, "native\n"))
        self.assertIn("without far memory", done.stderr)

    def test_program_that_changes_user_is_refused(self):
        program = self.compile("privileged")
        if os.geteuid() != 0:
            self.skipTest("making a program of another user needs root")
        os.chown(program, 12345, 12345)
        os.chmod(program, 0o4755)
        self.assert_refused(1, "set-user-id", "--best-effort", arguments=["run", "--", program])

    def test_program_with_a_sanitizer_is_refused_unless_best_effort(self):
        for flag, name in [("address", "AddressSanitizer"), ("thread", "ThreadSanitizer"), ("leak", "LeakSanitizer")]:
            with self.subTest(sanitizer=flag):
                program = self.compile(flag, "-fsanitize=" + flag)
                self.assert_refused(1, name, "-fsanitize=" + flag, "--best-effort", arguments=["run", "--", program])
                subprocess.run(["strip", program], check=True)
                self.assert_refused(1, name, arguments=["run", "--", program])
                done = self.call("run", "--best-effort", "--", program)
                self.assertEqual(done.stdout, "native\n", done.stderr)

    def test_go_program_is_refused(self):
        program = self.compile("go", "-Wl,--build-id=none", "-x", "c", self.write(
            "go.c", '__attribute__((section(".go.buildinfo"), used)) static const char go[16] = "x";\n'))
        self.assert_refused(1, "Go program", "--best-effort", arguments=["run", "--", program])


class Environment(CommandTest):
    def need_devices(self):
        """Devices are opened after the system was found good."""
        self.need_library()

    def test_report_is_not_overwritten(self):
        self.need_devices()
        path = self.write("report.json", "precious")
        self.assert_refused(2, "exists", "--force", arguments=["run", "--report", path, "--", "true"])
        with open(path) as file:
            self.assertEqual(file.read(), "precious")
        self.assert_refused(1, "No such file", arguments=["run", "--report", "/no/dir/r.json", "--", "true"])

    def test_server_unreachable_and_not_one_of_ours(self):
        self.need_devices()
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            port = closed.getsockname()[1]
        self.assert_refused(1, f"127.0.0.1:{port}",
                            arguments=["run", "--far", f"tcp://127.0.0.1:{port}", "--timeout", "1s", "--", "true"])
        with socket.create_server(("127.0.0.1", 0)) as stranger:
            port = stranger.getsockname()[1]
            thread = threading.Thread(target=self.greet, args=(stranger,), daemon=True)
            thread.start()
            self.assert_refused(1, f"127.0.0.1:{port}",
                                arguments=["run", "--far", f"tcp://127.0.0.1:{port}", "--timeout", "1s", "--", "true"])

    @staticmethod
    def greet(listener):
        try:
            while True:
                peer, _ = listener.accept()
                peer.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n" * 8)
                peer.close()
        except OSError:
            pass

    def serve(self, *arguments):
        server = subprocess.Popen([HINTERLAND, "serve", "--listen", "127.0.0.1:0", "--memory", "32M", *arguments],
                                  env=self.environment, stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        return server, server.stdout.readline().split()[2].rstrip(",")

    def test_keys(self):
        self.need_devices()
        key = self.write("key", "0123456789abcdef" * 2)
        _, address = self.serve("--key-file", key)
        run = ["run", "--far", "tcp://" + address]
        wrong = self.write("wrong", "fedcba9876543210" * 2)
        self.assert_refused(1, "key", arguments=[*run, "--key-file", wrong, "--", "true"])
        self.assert_refused(1, "key", arguments=[*run, "--", "true"])
        self.assert_refused(1, "none", arguments=[*run, "--key-file", self.path("none"), "--", "true"])
        self.assert_refused(1, "others", arguments=[*run, "--key-file", self.write("open", "k" * 32, 0o644), "--", "true"])
        self.assert_refused(1, "too short", arguments=[*run, "--key-file", self.write("short", "k"), "--", "true"])

    def test_serve(self):
        self.assert_refused(1, "short", arguments=["serve", "--key-file", self.write("short", "k")])
        self.assert_refused(1, "others", arguments=["serve", "--key-file", self.write("open", "k" * 32, 0o640)])
        self.assert_refused(1, "none", arguments=["serve", "--key-file", self.path("none")])
        self.assert_refused(1, "without a key", arguments=["serve", "--listen", "0.0.0.0:0"])
        _, address = self.serve()
        self.assert_refused(1, address, arguments=["serve", "--listen", address, "--memory", "32M"])

    def test_descriptor_limit(self):
        self.need_devices()
        done = subprocess.run(["sh", "-c", 'ulimit -n 20; exec "$@"', "sh", HINTERLAND, "run", "--", "true"],
                              env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("ulimit -n", done.stderr)

    def test_address_space_limit(self):
        self.need_devices()
        done = subprocess.run(["sh", "-c", 'ulimit -v 100000; exec "$@"', "sh", HINTERLAND, "run", "--", "true"],
                              env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("ulimit -v", done.stderr)

    def test_pids(self):
        self.assert_refused(1, "no process", arguments=["stat", "4194303"])
        self.assert_refused(1, "no process", arguments=["tune", "4194303", "--local", "64M"])
        self.assert_refused(1, "does not run under Hinterland", arguments=["stat", str(os.getpid())])
        self.assert_refused(1, "does not run under Hinterland",
                            arguments=["tune", str(os.getpid()), "--local", "64M"])
        if os.geteuid() != 0:
            self.assert_refused(1, "not yours", arguments=["stat", "1"])


if __name__ == "__main__":
    unittest.main()
