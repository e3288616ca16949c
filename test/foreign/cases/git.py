"""Git: a generated history imported, repacked hard, checked, cloned, logged, blamed and merged."""

from harness.data import Data
from harness.program import need

from .commands import Commands

COMMITS = 1_500

# The environment makes every object the same in every run.
GIT = ("export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null HOME=. GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b"
       " GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_AUTHOR_DATE='1700000000 +0000'"
       " GIT_COMMITTER_DATE='1700000000 +0000'; ")
WORK = (
    ("import", "git init -q --bare -b main r.git && git -C r.git fast-import --quiet <../history &&"
               " git -C r.git rev-parse main"),
    ("fsck", "git -C r.git fsck --strict --full"),
    ("gc", "git -C r.git -c gc.auto=0 -c pack.threads=2 gc --quiet --aggressive --prune=now && git -C r.git fsck --full"
           " && git -C r.git count-objects -v | grep -E '^(count|in-pack|packs|garbage)'"),
    ("verify-pack", "cd r.git && git verify-pack objects/pack/*.idx && echo well"),
    ("log", "git -C r.git log -p --stat --format=fuller main"),
    ("rev-list", "git -C r.git rev-list --objects --all | cut -d' ' -f1 | sort"),
    ("clone", "git clone -q --no-local r.git c && cd c && git fsck --full && git ls-files -s &&"
              " git status --short"),
    ("grep-blame", "git -C c grep -c 7 | sort; git -C c blame -s $(git -C c ls-files | head -1)"),
    ("merge", "cd c && git checkout -q -b side HEAD~20 && echo side >side && git add side && git commit -q -m side"
              " && git merge -q -m merge origin/main && git rev-parse 'HEAD^{tree}' &&"
              " git diff --stat HEAD^1 | tail -1"),
    ("repack", "git -C r.git -c pack.threads=2 repack -q -a -d -f --window=50 --depth=50 &&"
               " git -C r.git fsck --full"),
    ("bundle", "git -C r.git bundle create -q ../b main && git -C r.git bundle verify -q ../b && git clone -q -b main ../b d &&"
               " git -C d rev-parse HEAD"),
)


class Git(Commands):
    name = "git"
    help = "git: fast-import, gc --aggressive, fsck, clone, log, blame, merge"
    in_short = False  # a large package

    def prepare(self):
        need("git")
        data = Data(self.seed)
        with open(self.path("history"), "wb") as file:
            files = {}
            for commit in range(1, int(COMMITS * self.scale) + 1):
                file.write(b"commit refs/heads/main\n"
                           b"committer a <a@b> %d +0000\ndata 6\nchange\n" % (1600000000 + commit))
                for _ in range(3):
                    name = b"folder%d/file%d" % (data.random.randrange(10), data.random.randrange(20))
                    lines = files.setdefault(name, [])
                    for _ in range(60):
                        line = data.random.randbytes(18).hex().encode()
                        lines.insert(data.random.randrange(len(lines) + 1), line)
                    content = b"\n".join(lines) + b"\n"
                    file.write(b"M 644 inline %s\ndata %d\n%s\n" % (name, len(content), content))

    def commands(self):
        return [(name, GIT + command) for name, command in WORK]
