"""A link of a large C++ program by GNU ld: many objects full of templates, with debug information; the result compared.

One file is compiled, and copied with its symbols renamed: to the linker each copy is an object of its own, and the
input is there in seconds. A shared library, because the renamed copies miss some symbols.
"""

import os
import subprocess

from harness.errors import Failure
from harness.program import Batch, file_hash, need

from .compile import EACH, HEAD

OBJECTS = 110


class Link(Batch):
    name = "link"
    help = "GNU ld: a C++ program of many objects with debug information"

    def prepare(self):
        self._linker = need("ld")
        source, first = self.path("input.cpp"), self.path("first.o")
        with open(source, "w", encoding="utf-8") as file:
            file.write(HEAD + "".join(EACH.format(n=n, value=(n * 7919 + self.seed) % 100_003, depth=1 + n)
                                      for n in range(2)))
        self._call(need("g++"), "-std=c++17", "-O0", "-g", "-fPIC", "-ffunction-sections", "-c", "-o", first, source)
        self._objects = [self.path(f"part{number}.o") for number in range(max(2, int(OBJECTS * self.scale)))]
        for number, copy in enumerate(self._objects):
            self._call(need("objcopy"), f"--prefix-symbols=part{number}_", first, copy)

    @staticmethod
    def _call(*words):
        done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False)
        if done.returncode != 0:
            raise Failure(f"{words[0]}: {done.stderr.strip()[-300:]}")

    def command(self):
        return [self._linker, "-shared", "-O2", "--gc-sections", "--cref", f"-Map={self.path('map')}", "-o",
                self.path("output.so"), *self._objects]

    def answer(self, stdout):
        return {"library": file_hash(self.path("output.so"))}
