"""An application of bench/apps out of a copy of its sources that has no hints: built by the very commands of the build
tree, with `advise`'s patch or as it is."""

import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess

from harness.errors import Failure

from . import unhinted

COMPILE_SECONDS_MAX = 900
COMPILERS = 2  # at a time
# -g1 would leave out variables and types, which advice on library calls and classes needs.
LEFT_OUT = ("-DHL_NO_HINTS", "-Werror", "-g1")


def run(words, folder, what):
    """Its output. Failure with its last lines."""
    try:
        done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=COMPILE_SECONDS_MAX, check=False)
    except FileNotFoundError:
        raise Failure(f"{what}: there is no {words[0]}") from None
    except subprocess.TimeoutExpired:
        raise Failure(f"{what}: still running after {COMPILE_SECONDS_MAX} s") from None
    if done.returncode != 0:
        last = " / ".join(done.stdout.strip().splitlines()[-4:])
        raise Failure(f"{what}: exit status {done.returncode}: {last}"[:900])
    return done.stdout


def commands_of(build, program):
    """How the build tree makes it: ([words of a compilation], words that link)."""
    text = run(["ninja", "-C", build, "-t", "commands", program], build, f"the commands that build {program}")
    compiles, link = [], None
    for line in text.splitlines():
        words = shlex.split(re.sub(r"^ninja:.*", "", line))
        if "-c" in words:
            compiles.append([word for word in words if word not in LEFT_OUT])
        elif program in words and "-o" in words:
            link = words[words.index(":") + 2:-2] if words[0] == ":" else words
    if link is None:
        raise Failure(f"{build} does not say how it links {program}: configure it with ninja (make does)")
    return compiles, link


class Copy:
    """Sources of one application below `folder`, and what was built of them. `apps`: the folder bench/apps."""

    def __init__(self, build, apps, app, folder):
        self._build, self._apps = build, apps
        self._program = os.path.join("bench", "apps", f"app_{app}_plain")
        self.source, self._objects = os.path.join(folder, "source"), os.path.join(folder, "objects")
        every, self._link = commands_of(build, self._program)
        self._compiles = [words for words in every if words[words.index("-c") + 1].startswith(apps + os.sep)]
        if not os.path.exists(self.source):  # as it is, otherwise
            shutil.copytree(apps, self.source)  # all of them: some use another's files
            self._take_hints_out()
        self._write_compile_commands()

    def _take_hints_out(self):
        for folder, _, names in os.walk(self.source):
            for name in names:
                if name.endswith((".cpp", ".hpp")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        text = file.read()
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(unhinted.without_hints(text))

    def _here(self, words):
        return [word.replace(self._apps, self.source) for word in words]

    def _write_compile_commands(self):
        """For `advise --patch`, which tries its hints with the compiler."""
        entries = [{"directory": self._build, "file": words[words.index("-c") + 1],
                    "arguments": words[1:] if words[0].endswith("ccache") else words}
                   for words in map(self._here, self._compiles)]
        with open(os.path.join(self.source, "compile_commands.json"), "w", encoding="utf-8") as file:
            json.dump(entries, file)

    def build(self, output):
        """Compiles and links what the copy holds now. Failure."""
        objects, commands = {}, []
        for number, words in enumerate(map(self._here, self._compiles)):
            at = words.index("-o") + 1
            # The same name for what is patched and what is not: so a compiler cache knows the files that did not change.
            objects[words[at]] = os.path.join(self._objects, f"{number}.o")
            words[at] = objects[words[at]]
            for flag in ("-MF", "-MT"):
                if flag in words:
                    words[words.index(flag) + 1] = words[at] + ".d"
            commands.append(words)
        os.makedirs(self._objects, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(COMPILERS) as pool:
            list(pool.map(lambda words: run(words, self._build, f"compiling {words[words.index('-c') + 1]}"), commands))
        common = [path for name, path in objects.items() if "/app_common" in name]
        words = []
        for word in self._link:
            if word.endswith("libapp_common.a"):
                words += common
            else:
                words.append(output if word == self._program else objects.get(word, word))
        run(words, self._build, f"linking {self._program}")
        return output

    def apply(self, patch):
        """Failure when it does not fit everywhere."""
        run(["patch", "-p1", "--batch", "--fuzz=0", "-d", self.source, "-i", patch], self.source, "applying the patch")
