"""Programs for statistics, matrices, lists, pictures, films, texts, machines and pages of the web, with runtimes of their
own: those that are installed.
"""

import shutil

from harness.errors import Skip

from .commands import Commands

STATISTICS = """set.seed(1); n <- {items} * 5; d <- data.frame(k = sample(1e5, n, TRUE), v = runif(n), s = sample(letters, n, TRUE))
print(aggregate(v ~ s, d, sum), digits = 12); o <- d[order(d$k, d$v), ]; print(sum(o$v * seq_len(n)), digits = 14)
print(coef(lm(v ~ s + k, d)), digits = 10); print(length(lapply(split(d$v, d$k), range)))
"""
MATRICES = """rand("twister", 1); A = rand(600); [Q, R] = qr(A); printf("%d\\n", norm(Q * R - A) < 1e-9);
x = cumsum(rand(1, {items} * 10)); printf("%.10g\\n", x(end)); c = cell(1, {items});
for i = 1:{items} c{{i}} = sprintf("%d", mod(i * 7919, 100003)); end; u = unique(c); printf("%d %s\\n", numel(u), u{{500}});
"""
PAGE = """<html><body><script>let m = new Map(); for (let i = 0; i < {items}; i++) m.set(i * 7919 % 1000003, String(i));
let s = 0; for (const [k, v] of m) s = (s * 31 + k + v.length) % 1000000007;
document.body.innerText = s;</script></body></html>
"""
HASH = """(let ((h (make-hash-table)) (s 0)) (dotimes (i {items}) (setf (gethash (mod (* i 7919) 1000003) h) (format nil "~d" i)))
  (maphash (lambda (k v) (setq s (mod (+ s (* k (length v))) 1000000007))) h) (print s)) (terpri) (bye)
"""
WORK = {
    "R": ("Rscript", "Rscript ../statistics.R"),
    "octave": ("octave-cli", "OMP_NUM_THREADS=1 octave-cli -q --no-init-file ../matrices.m"),
    "gcl": ("gcl", "gcl -batch -load ../hash.lisp"),  # its heap is memory by brk
    "ffmpeg": ("ffmpeg", "ffmpeg -v error -f lavfi -i testsrc2=size=1280x720:rate=25:duration=2 -c:v libx264 -threads 3"
                         " -f framemd5 -"),
    "imagemagick": ("convert", "convert -seed 3 -size 1200x1200 plasma: -resize 150% -blur 0x4 -rotate 17 -depth 8 rgb:-"),
    "pandoc": ("pandoc", "pandoc ../text.md -t latex"),
    # It loads modules with GLib, and ends: there is no kernel to start.
    "qemu": ("qemu-system-x86_64", "qemu-system-x86_64 -machine pc -accel tcg,thread=multi -smp 2 -m 64 -nographic"
                                   " -no-reboot -kernel no-such-kernel 2>&1; test $? = 1"),
    # It defines malloc itself, and forks. The process that forks its children without --no-zygote insists on one thread.
    "chromium": ("chromium", "chromium --headless --no-sandbox --no-zygote --disable-gpu --virtual-time-budget=10000"
                             " --user-data-dir=$PWD/profile --dump-dom file://$PWD/../page.html 2>/dev/null"),
}


class Studios(Commands):
    name = "studios"
    help = "R, Octave, GCL, ffmpeg, ImageMagick, pandoc, QEMU and Chromium, those that are installed"
    in_short = False

    def prepare(self):
        if not self.commands():
            raise Skip("none of its programs is installed")
        for name, text in (("statistics.R", STATISTICS), ("matrices.m", MATRICES), ("page.html", PAGE),
                           ("hash.lisp", HASH)):
            with open(self.path(name), "w", encoding="ascii") as file:
                file.write(text.format(items=int(500_000 * self.scale)))
        with open(self.path("text.md"), "w", encoding="ascii") as file:
            for part in range(int(2000 * self.scale)):
                words = " ".join(f"*w{part * i % 997}* `c{i}` [l{i}](http://x.y/{part})" for i in range(40))
                file.write(f"# Part {part}\n\n{words}\n\n- a\n- b\n\n|x|y|\n|-|-|\n|1|{part}|\n\n")

    def commands(self):
        return [(name, command) for name, (program, command) in WORK.items() if shutil.which(program)]
