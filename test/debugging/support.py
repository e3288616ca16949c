"""A program to debug, under far memory; and a reader of core files that trusts no debugger."""

import ctypes
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

HINTERLAND = os.environ["HINTERLAND_TEST_COMMAND"]
SUBJECT = os.environ["HINTERLAND_TEST_SUBJECT"]
GDB_SCRIPT = os.environ["HINTERLAND_TEST_GDB_SCRIPT"]
PAGES, PAGE = 8192, 4096


class DebuggingTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hinterland-debugging-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("HINTERLAND_")}
        self.environment.pop("LD_PRELOAD", None)
        # In memory: where a disk is slow, programs and commands would wait for it.
        figures = tempfile.TemporaryDirectory(prefix="figures-of-a-test-", dir="/dev/shm")
        self.addCleanup(figures.cleanup)
        self.figures_folder = os.path.join(figures.name, "stats")
        self.environment["HINTERLAND_STAT_DIR"] = self.figures_folder

    @classmethod
    def setUpClass(cls):
        if subprocess.run([HINTERLAND, "doctor"], stdout=subprocess.DEVNULL, check=False, timeout=60).returncode != 0:
            raise unittest.SkipTest("this machine cannot run programs on far memory")

    def path(self, name):
        return os.path.join(self.folder, name)

    def call(self, *words, timeout=60):
        return subprocess.run([HINTERLAND, *words], env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=timeout, check=False, cwd=self.folder)

    def need_gdb_calls(self):
        """Skips where gdb cannot call a function in any program: gdb 13 on processors with AMX."""
        plain = subprocess.Popen(["sleep", "100"])
        try:
            if "= 4711" not in self.gdb(f"attach {plain.pid}", "print (int) abs(-4711)"):
                self.skipTest("this gdb cannot call functions on this processor, whatever the program")
        finally:
            plain.kill()
            plain.wait()

    def gdb(self, *commands, arguments=(), timeout=100):
        if shutil.which("gdb") is None:
            self.skipTest("gdb is not installed")
        words = ["gdb", "-nx", "-q", "-batch", "-ex", "set debuginfod enabled off", "-ex", "set pagination off"]
        for command in commands:
            words += ["-ex", command]
        done = subprocess.run([*words, *arguments], capture_output=True, text=True, check=False, timeout=timeout,
                              stdin=subprocess.DEVNULL, cwd=self.folder)
        return done.stdout + done.stderr


class Subject:
    """test/debugging/subject.c under `hinterland run`."""

    def __init__(self, test, *options, mode="still", local="8M", takeover="start", before=None):
        words = [HINTERLAND, "run", "--local", local, "--far", "mem:", "--takeover", takeover, *options, "--", SUBJECT,
                 mode]
        self.errors = tempfile.TemporaryFile()
        test.addCleanup(self.errors.close)
        self.process = subprocess.Popen(words, env=test.environment, cwd=test.folder, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, bufsize=0, preexec_fn=before)
        test.addCleanup(self._clean_up)
        line = self.process.stdout.readline().decode().split()
        test.assertTrue(line and line[0] == "ready", f"{line} {self.said()}")
        self.pid, self.nodes, self.secret = int(line[1]), int(line[2], 16), int(line[3], 16)

    def _clean_up(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def tell(self, letter):
        self.process.stdin.write(letter.encode())

    def ask(self, letter):
        self.tell(letter)
        return self.process.stdout.readline().decode().strip()

    def end(self, seconds=60):
        self.process.stdin.close()
        return self.process.wait(seconds)

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")


class Core:
    """The memory in an ELF core file: bytes, or None where the file has none."""

    def __init__(self, path):
        self._file = open(path, "rb")  # pylint: disable=consider-using-with
        header = self._file.read(64)
        assert header[:4] == b"\x7fELF" and struct.unpack_from("<H", header, 16)[0] == 4, "not a core file"
        at, = struct.unpack_from("<Q", header, 32)
        count, = struct.unpack_from("<H", header, 56)
        if count == 0xffff:
            self._file.seek(struct.unpack_from("<Q", header, 40)[0])
            count, = struct.unpack_from("<I", self._file.read(64), 44)
        self._file.seek(at)
        headers = self._file.read(56 * count)
        self.loads = []
        for i in range(count):
            kind, _, offset, start, _, in_file, in_memory, _ = struct.unpack_from("<IIQQQQQQ", headers, 56 * i)
            if kind == 1:
                self.loads.append((start, in_file, in_memory, offset))

    def close(self):
        self._file.close()

    def word(self, address):
        for start, in_file, _, offset in self.loads:
            if start <= address < start + in_file:
                self._file.seek(offset + address - start)
                return struct.unpack("<Q", self._file.read(8))[0]
        return None

    def nodes(self, base):
        """(right, absent, wrong) values of the program's nodes."""
        values = [self.word(base + i * PAGE + 8) for i in range(PAGES)]
        right = sum(value == i * 3 + 1 for i, value in enumerate(values))
        absent = values.count(None)
        return right, absent, PAGES - right - absent


class Tracer:
    """ptrace on one thread, by way of libc."""

    PEEK, POKE, CONT, SEIZE, INTERRUPT, DETACH = 2, 5, 7, 0x4206, 0x4207, 17

    def __init__(self, pid):
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.ptrace.restype = ctypes.c_long
        self._libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.pid = pid
        assert self.call(self.SEIZE)[1] == 0 and self.call(self.INTERRUPT)[1] == 0
        os.waitpid(pid, 0x40000000)

    def call(self, request, address=0, data=0):
        ctypes.set_errno(0)
        result = self._libc.ptrace(request, self.pid, address, data)
        return result, ctypes.get_errno()

    def detach(self):
        self.call(self.DETACH)
