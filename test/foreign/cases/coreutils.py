"""GNU coreutils and their neighbours (grep, sed, awk, diff, tar) on generated lines."""

from harness.data import Data
from harness.program import need

from .commands import Commands

LINES = 400_000  # of about 30 bytes

COMMANDS = (
    ("sort", "sort -S 200M --parallel=2 ../lines"),
    ("sort-numeric", "sort -S 100M -k2,2n -k1,1r ../lines"),
    ("sort-unique", "sort -S 100M -u -k3,3 ../lines"),
    ("sort-merge", "sort -S 4M -T . --batch-size=4 ../lines"),  # with temporary files
    ("shuf", "shuf --random-source=../noise ../lines"),
    ("tac", "tac ../lines"),
    ("tac-pipe", "cat ../lines | tac"),
    ("sha256sum", "sha256sum ../lines ../noise && sha256sum ../lines >sums && sha256sum -c sums"),
    ("md5sum-b2sum-cksum", "md5sum ../lines; b2sum ../lines; cksum ../lines; sum ../lines"),
    ("join", "sort -k3,3 ../lines >a; sort -k3,3 ../others >b; join -1 3 -2 3 a b"),
    ("comm", "sort ../lines >a; sort ../others >b; comm -3 a b"),
    ("uniq", "cut -d' ' -f3 ../lines | sort | uniq -c | sort -rn"),
    ("tsort", "awk '$2 % 50 == 0 { print $2 \" \" $2 + 50 }' ../lines | tsort"),
    ("paste-cut", "cut -c5-20 ../lines | paste -s -d, - | fold -w 977"),
    ("split", "split -l 30000 ../lines piece. && cat piece.* | sha256sum && ls"),
    ("csplit", "csplit -s -n 4 ../lines 1000 '{20}' && cat xx* | sha256sum"),
    ("tail-head", "tail -n 20000 ../lines | head -n 15000; tail -c 500000 ../lines; head -c -500000 ../lines"),
    ("base64", "base64 ../noise | tee coded | base64 -d | cmp - ../noise && cat coded"),
    ("od", "od -A x -t x8 ../noise"),
    ("numfmt-nl-tr", "cut -d' ' -f2 ../lines | numfmt --to=iec | nl | tr 0-9 a-j"),
    ("fmt-pr", "tr -s ' ' '\\n' <../others | fmt -w 70 | pr -3 -t -l 60"),
    ("factor-seq", "seq 1000000007 17 1000200007 | factor"),
    ("wc", "wc ../lines ../noise ../others"),
    ("dd", "dd if=../noise bs=3M iflag=fullblock status=none | dd bs=7k status=none"),  # large system calls
    ("cp-cmp", "cp ../noise copy && cmp copy ../noise && stat -c %s copy"),
    ("expr", "i=0; while [ $i -lt 200 ]; do i=$(expr $i + 1); done; echo $i"),
    ("grep", "grep -c 7 ../lines; grep -E '([0-9a-f])\\1\\1' ../lines; grep -vF abc ../others"),
    ("sed", "sed -e 's/[aeiou]/<&>/g;y/123/xyz/' ../others; sed -n '1!G;h;$p' ../few"),
    ("awk", "awk '{ sum[$3] += $2; text[NR] = $1 } END { for (k in sum) print k, sum[k] | \"sort\"; close(\"sort\");"
            " print length(text) }' ../lines"),
    ("diff", "diff ../few ../fewer; test $? = 1"),
    ("tar", "mkdir d && cp ../lines ../noise d && tar -c --sort=name --mtime=@0 --owner=0 --group=0 d | tee t | tar -tv"
            " | wc -l && tar -d -f t && echo same"),
)


class Coreutils(Commands):
    name = "coreutils"
    help = "GNU sort, shuf, tac, sha256sum, join and others on generated lines"

    def prepare(self):
        for name in ("sort", "awk", "sed", "grep", "diff", "tar"):
            need(name)
        data = Data(self.seed)
        lines = int(LINES * self.scale)
        self._write("lines", data.random, lines)
        self._write("others", data.random, lines // 3)
        self._write("few", data.random, 3000)
        with open(self.path("few"), "rb") as few, open(self.path("fewer"), "wb") as fewer:
            fewer.writelines(line for line in few if data.random.random() < 0.9)
        with open(self.path("noise"), "wb") as file:
            for _ in range(int(24 * self.scale)):
                file.write(data.random.randbytes(1 << 20))

    def _write(self, name, random, lines):
        with open(self.path(name), "wb") as file:
            file.writelines(b"%016x %d %06x\n" % (random.getrandbits(64), number, random.getrandbits(18))
                            for number in range(lines))

    def commands(self):
        return COMMANDS
