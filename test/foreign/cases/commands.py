"""A program that is a list of commands, each a check: its exit status and what it prints must be as natively."""

import os
import shlex

from harness.program import Batch, file_hash

from passes import Passes

# Each runs in a subshell in the folder `work`, which is new for each run.
SCRIPT_START = """rm -rf work out; mkdir work out; cd work || exit 1
"""
SCRIPT_EACH = """( {command}
) >../out/{name} 2>../out/{name}.errors </dev/null
echo "$?" >../out/{name}.status
"""


class Commands(Passes, Batch):
    shell = "/bin/sh"

    def commands(self):
        """(name, text for the shell) of each."""
        raise NotImplementedError

    def command(self):
        with open(self.path("script"), "w", encoding="utf-8") as file:
            file.write(SCRIPT_START)
            for name, command in self.commands():
                file.write(SCRIPT_EACH.format(name=shlex.quote(name), command=command))
        return [self.shell, self.path("script")]

    def answer(self, stdout):
        return {name: self._result(name) for name, _ in self.commands() if self._status(name) == "0"}

    def _status(self, name):
        try:
            with open(os.path.join(self.folder, "out", name + ".status"), encoding="ascii") as file:
                return file.read().strip()
        except FileNotFoundError:
            return "not run"

    def _result(self, name):
        return file_hash(os.path.join(self.folder, "out", name))
