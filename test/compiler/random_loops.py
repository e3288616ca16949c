#!/usr/bin/env python3
"""Random programs of loops over arrays, plain at -O0 and hinted at each other level: equal results, natively and far.
random_loops.py PLUGIN PRELOADED [PROGRAMS [guards|static]]

Loops go up and down, by indices of several types and by pointers, with steps and offsets of all kinds, nested, with
early ends, over arrays of lengths at the edges of strips; a seed is printed, and HINTERLAND_TEST_SEED gives it back.
With `guards` the programs have these, and their arrays are blocks of the object window, more than is local; with `static`
their hints are compiled in. Without guards, and with csmith installed, programs of its are compared as well, natively and with their hints on."""
import os
import random
import shutil
import sys
import tempfile

from common import Runner, call, expect, skip_without, with_guards, with_static_hints

LENGTHS = [0, 1, 2, 3, 5, 31, 32, 33, 511, 513, 32767, 32768, 32769, 65536, 65537, 131072, 200001]
BLOCK_LENGTHS = [0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 64, 100, 127, 255, 256, 511, 512]  # of at most 2 KiB


class Program:
    def __init__(self, chance, in_blocks=False):
        self.chance, self.in_blocks = chance, in_blocks

    def step(self):
        return self.chance.choice([1, 1, 1, 2, 3, 5, 7, 16, 100, 300, 1000])

    def body(self, index):
        """A statement on a[index]; other arrays may be gathered from."""
        return self.chance.choice([
            f"s += a[{index}];", f"a[{index}] = s ^ (u32)({index});", f"s = s * 31 + a[{index}]; a[{index}] ^= 5;",
            f"s += b[a[{index}] % n];", f"b[a[{index}] % n] += (u32)s;", f"if (a[{index}] & 1) s += b[{index}]; else s ^= {index};",
            f"a[{index}] += b[{index}] * 3;", f"if (a[{index}] % 1001 == 7) break; s++;",
            f"if (a[{index}] % 7 < 2) a[{index}] = b[n - 1 - (u64)({index})];"])

    def loop(self):
        kind = self.chance.randrange(8)
        step, type_ = self.step(), self.chance.choice(["u32", "int", "u64", "long"])
        if kind == 0:
            return f"for ({type_} i = 0; i < ({type_})n; i += {step}) {{ {self.body('i')} }}"
        if kind == 1:
            return f"for (long i = (long)n - 1; i >= 0; i -= {step}) {{ {self.body('i')} }}"
        if kind == 2:
            return f"for ({type_} i = 0; i != ({type_})n; i++) {{ {self.body('i')} }}"
        if kind == 3:
            return "for (u32 *p = a, *e = a + n; p != e; ++p) { s = s * 33 + *p; *p += (u32)s; }"
        if kind == 4:
            return "for (u32 *p = a + n; p > a;) { --p; s ^= *p; *p = (u32)(p - a); }"
        if kind == 5:
            width = self.chance.choice([1, 2, 4, 9, 64, 1500])
            return (f"for (u64 r = 0; r + {width} <= n; r += {width}) for ({type_} c = 0; c < {width}; ++c) "
                    f"{{ const u64 i = r + (u64)c; {self.body('i')} }}")
        if kind == 6:
            return f"{{ {type_} i = 0; if (n) do {{ {self.body('i')} i += {step}; }} while (i < ({type_})n); }}"
        return f"for (u64 i = 0; i < n / 2; ++i) {{ const u32 t = a[i]; a[i] = a[n - 1 - i]; a[n - 1 - i] = t; s += t; }}"

    def text(self):
        loops = [self.loop() for _ in range(12)]
        functions = "".join(f"NOINLINE u64 f{i}(u32* a, u32* b, u64 n, u64 s) {{ {loop} return s; }}\n"
                            for i, loop in enumerate(loops))
        calls = "".join(f"s = f{i}(a, b, n, s); " for i in range(len(loops)))
        if self.in_blocks:
            return self.head(functions) + self.main_of_blocks(calls)
        lengths = ", ".join(map(str, LENGTHS))
        return (self.head(functions) +
                "int main(void) {\n static const u64 lengths[] = {" + lengths + "};\n u64 s = 1;\n"
                " u32 *a = malloc(4 << 20), *b = malloc(4 << 20);\n"
                " for (u64 i = 0; i < 1 << 20; ++i) { a[i] = (u32)(i * 2654435761u); b[i] = (u32)(i ^ 77); }\n"
                " for (u64 l = 0; l < sizeof lengths / sizeof *lengths; ++l) {\n  const u64 n = lengths[l];\n  " +
                calls + "\n  printf(\"%lu %lx\\n\", n, s);\n }\n"
                " for (u64 i = 0; i < 1 << 20; ++i) s = s * 31 + a[i] + b[i];\n printf(\"%lx\\n\", s);\n return 0;\n}\n")


    @staticmethod
    def head(functions):
        return ("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\ntypedef unsigned u32;\ntypedef unsigned long u64;\n"
                "#define NOINLINE __attribute__((noinline)) static\n" + functions)

    @staticmethod
    def main_of_blocks(calls):
        """Each call works on two blocks of a length; some are made anew, and libc compares some."""
        lengths = ", ".join(map(str, BLOCK_LENGTHS))
        return ("int main(void) {\n enum { kinds = " + str(len(BLOCK_LENGTHS)) + ", all = kinds * 2000 };\n"
                " static const u64 lengths[] = {" + lengths + "};\n static u32* block[all];\n u64 s = 1, at = 7;\n"
                " for (u64 i = 0; i < all; ++i) {\n  block[i] = malloc(4 * lengths[i % kinds]);\n"
                "  for (u64 j = 0; j < lengths[i % kinds]; ++j) block[i][j] = (u32)(i * 2654435761u + j);\n }\n"
                " for (u64 r = 0; r < 4000; ++r) {\n  at = at * 6364136223846793005u + 1442695040888963407u;\n"
                "  const u64 i = (at >> 33) % all, k = ((at >> 13) % (all / kinds)) * kinds + i % kinds, n = lengths[i % kinds];\n"
                "  u32 *a = block[i], *b = block[k];\n  " + calls + "\n"
                "  if (r % 50 == 0) s += memcmp(a, b, 4 * n) == 0;\n"
                "  if (r % 9 == 0) { free(a); a = block[i] = calloc(n, 4); }\n"
                "  if (r % 7 == 0 && i != k) memcpy(block[i], block[k], 4 * n);\n"
                "  if (r % 100 == 0) printf(\"%lu %lx\\n\", n, s);\n }\n"
                " for (u64 i = 0; i < all; ++i) for (u64 j = 0; j < lengths[i % kinds]; ++j) s = s * 31 + block[i][j];\n"
                " printf(\"%lx\\n\", s);\n return 0;\n}\n")


def compare(source, inserted, runner, folder, options, seed, local="4M"):
    """Of one program: the results of the plain one, and those of the ones with hints, or guards."""
    call(["clang-19", "-O0", "-w", *options, source, "-o", folder + "/plain"])
    expected = call(["timeout", "20", folder + "/plain"]).stdout
    for level in ["-O1", "-O2", "-O3"]:
        call(["clang-19", level, "-w", *inserted, *options, source, "-o", folder + "/hinted"])
        expect(call([folder + "/hinted"]).stdout == expected, f"seed {seed} {level}: natively")
        output, _ = runner.far([folder + "/hinted"], local)
        expect(output == expected, f"seed {seed} {level}: far")


def csmith_programs(count, seed, inserted, runner, folder):
    include = "/usr/include/csmith"
    if shutil.which("csmith") is None or not os.path.isdir(include):
        print("csmith is not installed: its programs are left out")
        return
    done = 0
    for i in range(10 * count):
        source = folder + "/csmith.c"
        call(["env", "-C", folder, "csmith", "--seed", seed + i, "--no-packed-struct", "-o", source])
        call(["clang-19", "-O0", "-w", f"-I{include}", source, "-o", folder + "/plain"])
        try:
            call(["timeout", "2", folder + "/plain"])
        except SystemExit:
            continue  # does not end: csmith makes such, too
        compare(source, inserted, runner, folder, [f"-I{include}"], f"csmith {seed + i}")
        done += 1
        if done == count:
            break
    print(f"{done} programs of csmith are equal")


def main():
    plugin, preload = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 6
    guards = sys.argv[4:] == ["guards"]
    inserted = {"guards": with_guards(plugin), "static": with_static_hints(plugin)}.get(
        "".join(sys.argv[4:]), [f"-fpass-plugin={plugin}"])
    skip_without("clang-19")
    seed = int(os.environ.get("HINTERLAND_TEST_SEED") or random.randrange(1 << 30))
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(preload, folder)
        for i in range(count):
            source = folder + "/loops.c"
            with open(source, "w") as file:
                file.write(Program(random.Random(seed + i), guards).text())
            # Objects have half of it; a program's blocks take some 20 MiB.
            compare(source, inserted, runner, folder, [], seed + i, "16M" if guards else "4M")
        print(f"{count} programs of loops are equal")
        if not guards:
            csmith_programs(max(1, count // 2), seed, inserted, runner, folder)


if __name__ == "__main__":
    main()
