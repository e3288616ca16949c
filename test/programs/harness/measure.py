"""Runs a program once, natively or behind a launcher's words, and says what came out."""

import dataclasses
import os
import socket
import time

from .errors import Failure
from .process import Process
from .program import Batch


@dataclasses.dataclass
class Outcome:
    answer: dict
    seconds: float  # of the work: for a server without its start and end
    peak_bytes: int  # RssAnon of the process that took most
    hog: str
    samples: int


def _last_words(path):
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 2000))
        lines = file.read().decode(errors="replace").strip().splitlines()
    return ": " + " / ".join(lines[-3:])[:300] if lines else ""


def run(program, before=(), *, around=(), seconds_max=120):
    """`before`: the launcher's words, empty for native. `around`: words that need our own user, before all others.
    Failure also when the program itself fails."""
    out, errors = program.path("stdout"), program.path("stderr")
    with open(out, "wb") as stdout, open(errors, "wb") as stderr:
        argv = [*around, *program.wrapper(), *before, *program.command()]
        with Process(argv, stdout=stdout, stderr=stderr, cwd=program.folder) as process:
            try:
                drive = _batch if isinstance(program, Batch) else _server
                answer, seconds = drive(program, process, out, seconds_max)
            except Failure as failure:
                raise Failure(f"{failure}{_last_words(errors)}") from None
            name, peak = process.sampler.hog()
            return Outcome(answer, seconds, peak, name, process.sampler.samples)


def _batch(program, process, out, seconds_max):
    code = process.wait(seconds_max)
    program.accept(code)
    return program.answer(out), process.seconds


def _server(program, process, _, seconds_max):
    link = program.wait_ready(process, 30)
    with link:
        link.settimeout(seconds_max)
        started = time.monotonic()
        try:
            answer = program.work(link)
            seconds = time.monotonic() - started
            program.stop(link)
        except (OSError, EOFError) as error:
            raise Failure(f"talking to the server: {_why(error, process, seconds_max)}") from None
    code = process.wait(30)
    if code != 0:
        raise Failure(f"exit status {code} at its end")
    return answer, seconds


def _why(error, process, seconds_max):
    if isinstance(error, socket.timeout):
        return f"no answer within {seconds_max} s"
    time.sleep(0.2)  # a connection breaks a moment before its process is gone
    return str(error) if process.running() else f"it ended with exit status {process.wait(0)}"
