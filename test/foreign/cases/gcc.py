"""GCC: a generated C program over several files, with link-time optimisation by two jobs; it must run and be equal."""

from harness.program import need

from .commands import Commands

FILES, FUNCTIONS = 4, 120

FUNCTION = """
static unsigned step_{n}(unsigned x, struct state *s) {{
  for (unsigned i = 0; i < {loops}; i++) {{
    switch (x % 5) {{
      case 0: x = x * {odd}u + i; break;
      case 1: x ^= x >> {shift}; s->sum += x; break;
      case 2: s->table[x % 64] += i * {n}u; x += s->table[i % 64]; break;
      case 3: x = (x << {shift}) | (x >> (32 - {shift})); break;
      default: x += (unsigned)sizeof *s + {n}u; s->count++;
    }}
  }}
  return x;
}}
"""


class Gcc(Commands):
    name = "gcc"
    help = "gcc -O2 -flto of generated C files, the program run; g++ with threads is test/programs' compile"
    in_short = False

    def prepare(self):
        need("gcc")
        functions = max(10, int(FUNCTIONS * self.scale))
        for file in range(FILES):
            with open(self.path(f"part{file}.c"), "w", encoding="utf-8") as out:
                out.write("struct state { unsigned table[64], sum, count; };\n")
                for n in range(functions):
                    out.write(FUNCTION.format(n=n, loops=3 + n % 7, odd=2 * ((n * 7919 + self.seed) % 99991) + 1,
                                              shift=1 + (n + file) % 31))
                out.write(f"unsigned part{file}(unsigned x, struct state *s) {{\n")
                out.write("".join(f"  x = step_{n}(x, s);\n" for n in range(functions)) + "  return x;\n}\n")
        with open(self.path("main.c"), "w", encoding="utf-8") as out:
            out.write("#include <stdio.h>\nstruct state { unsigned table[64], sum, count; };\n")
            out.write("".join(f"unsigned part{n}(unsigned, struct state *);\n" for n in range(FILES)))
            calls = "".join(f" x = part{n}(x, &s);" for n in range(FILES))
            out.write("int main(void) { struct state s = {{0}, 0, 0}; unsigned x = 1; for (int i = 0; i < 200; i++) {"
                      + calls + " } printf(\"%u %u %u\\n\", x, s.sum, s.count); }\n")

    def commands(self):
        sources = " ".join(f"../part{n}.c" for n in range(FILES)) + " ../main.c"
        return (
            ("assembly", "gcc -O2 -S -o - ../part0.c"),
            ("objects", f"gcc -O2 -c {sources} && cat *.o"),
            ("plain", "gcc *.o -o plain && ./plain && cat plain"),
            ("lto", f"gcc -O2 -flto=2 {sources} -o lto && ./lto"),
            ("debug", f"gcc -g3 -O3 -fipa-pta -c {sources} && objdump -d --no-show-raw-insn part1.o"),
            ("sanitized", f"gcc -O1 -fsanitize=undefined {sources} -o sanitized && env -u LD_PRELOAD ./sanitized"),
            ("preprocessed", "printf '#include <stdio.h>\\n#include <stdlib.h>\\n' | gcc -E -dD -"),
        )
