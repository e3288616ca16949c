"""The command under test: `hinterland run`, `serve` and `doctor`."""

import os
import re
import select
import signal
import subprocess
import time

from . import endings
from .errors import Failure, Skip
from .process import Process, environment

_ADDRESS = re.compile(rb"(127\.0\.0\.1:([0-9]+))")


class Launcher:
    def __init__(self, path):
        self.path = os.path.abspath(path)
        if not os.access(self.path, os.X_OK):
            raise FileNotFoundError(f"no command at {self.path}: build it first (make)")

    def check(self):
        """Skip when this machine cannot run far memory at all, with doctor's words."""
        try:
            doctor = subprocess.run([self.path, "doctor"], capture_output=True, text=True, timeout=30,
                                    env=environment(), check=False)
        except subprocess.TimeoutExpired:
            raise Failure("hinterland doctor: no answer after 30 s") from None
        if doctor.returncode == 1:
            words = [line for line in doctor.stdout.splitlines() + doctor.stderr.splitlines() if line.strip()]
            raise Skip("hinterland doctor: " + (words[-1].strip() if words else "far memory does not work here"))
        if doctor.returncode != 0:
            raise Failure(f"hinterland doctor: exit status {doctor.returncode}: {doctor.stderr.strip()[:200]}")

    def run(self, *, local_bytes, url, report, options=()):
        """What stands before a program: words for argv."""
        return [self.path, "run", "--local", str(local_bytes), "--far", url, "--report", report, *options, "--"]


class Server:
    """`hinterland serve` on a free loopback port, until the `with` ends."""

    def __init__(self, launcher, memory_bytes, errors):
        self._process = Process([launcher.path, "serve", "--listen", "127.0.0.1:0", "--memory", str(memory_bytes)],
                                stdout=subprocess.PIPE, stderr=errors, sample=False)
        try:
            self.url = "tcp://" + self._address(20)
        except BaseException:
            self._process.kill()
            raise

    def _address(self, seconds):
        """HOST:PORT out of what the server prints at its start."""
        text, end = b"", time.monotonic() + seconds
        descriptor = self._process.stdout.fileno()
        while time.monotonic() < end:
            with endings.waiting:
                ready, _, _ = select.select([descriptor], [], [], max(0, end - time.monotonic()))
            data = os.read(descriptor, 4096) if ready else b""
            text += data
            lines, _, _ = text.rpartition(b"\n")
            found = _ADDRESS.search(lines)
            if found and int(found[2]) != 0:
                return found[1].decode()
            if ready and not data:
                break
        raise Failure(f"hinterland serve did not say where it listens, but: {text.decode(errors='replace')[:200]!r}")

    @property
    def pid(self):
        return self._process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.stop()
        except Failure:
            pass  # killed below; a server that hangs is tested where stop() is called
        finally:
            self._process.kill()

    def stop(self):
        """SIGTERM, as a user would: it must end cleanly."""
        self._process.send(signal.SIGTERM)
        code = self._process.wait(10)
        if code != 0:
            raise Failure(f"hinterland serve: exit status {code} after SIGTERM")
