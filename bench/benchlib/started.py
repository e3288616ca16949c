"""Programs of build/bench that print JSON, run to their end."""

import json
import os

from harness.errors import Failure
from harness.process import Process

SECONDS_MAX = 900


def last_words(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return " / ".join(file.read().strip().splitlines()[-3:])[:300]


def run(argv, folder):
    """Runs it; the path of what it printed. Failure when it does not end well."""
    out, errors = os.path.join(folder, "stdout"), os.path.join(folder, "stderr")
    with open(out, "wb") as stdout, open(errors, "wb") as stderr:
        with Process(argv, stdout=stdout, stderr=stderr, cwd=folder, sample=False) as process:
            code = process.wait(SECONDS_MAX)
    if code != 0:
        raise Failure(f"exit status {code}: {last_words(errors)}")
    return out


def run_json(argv, folder):
    """What it printed, as JSON."""
    with open(run(argv, folder), encoding="utf-8") as file:
        return json.load(file)
