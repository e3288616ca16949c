"""git repack of a generated repository, everything deltified anew with a wide window; the pack compared."""

import glob
import os
import subprocess

from harness.data import Data
from harness.errors import Failure
from harness.program import Batch, file_hash, need

COMMITS, FILES, LINES = 220, 12, 2_500  # blobs of some 100 kB: what a window of a hundred holds is most of the memory

# With one thread the pack is the same in every run, byte by byte.
WORK = ("set -e; rm -rf work.git; cp -r first.git work.git; git -C work.git -c pack.threads=1 repack -q -a -d -f"
        " --window=100 --depth=50; git -C work.git fsck --full")
ENVIRONMENT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


class GitRepack(Batch):
    name = "git"
    help = "git repack -a -d -f --window=100 of a generated history"

    def prepare(self):
        git = need("git")
        for words, history in (([git, "init", "-q", "--bare", "-b", "main", "first.git"], None),
                               ([git, "-C", "first.git", "fast-import", "--quiet"], b"".join(self._history()))):
            done = subprocess.run(words, input=history, capture_output=True, cwd=self.folder, check=False,
                                  env={**os.environ, **ENVIRONMENT})
            if done.returncode != 0:
                raise Failure(f"{' '.join(words)}: {done.stderr.decode(errors='replace').strip()[-300:]}")

    def _history(self):
        random = Data(self.seed).random
        files = [[random.randbytes(20).hex().encode() for _ in range(LINES)] for _ in range(FILES)]
        for commit in range(max(3, int(COMMITS * self.scale))):
            yield b"commit refs/heads/main\ncommitter a <a@b> %d +0000\ndata 6\nchange\n" % (1600000000 + commit)
            for number in random.sample(range(FILES), 3):
                lines = files[number]
                for _ in range(40):
                    lines[random.randrange(LINES)] = random.randbytes(20).hex().encode()
                content = b"\n".join(lines) + b"\n"
                yield b"M 644 inline file%d\ndata %d\n%s\n" % (number, len(content), content)

    def command(self):
        settings = " ".join(f"{name}={value}" for name, value in ENVIRONMENT.items())
        return ["/bin/sh", "-c", f"export {settings}; {WORK}"]

    def answer(self, stdout):
        packs = glob.glob(self.path("work.git/objects/pack/*.pack"))
        if len(packs) != 1:
            raise Failure(f"{len(packs)} packs after git repack, where there should be one")
        return {"pack": file_hash(packs[0])}
