#!/usr/bin/env python3
"""Random programs of loops over arrays, plain at -O0 and hinted at each other level: equal results, natively and far.
random_loops.py PLUGIN PRELOADED [PROGRAMS]

Loops go up and down, by indices of several types and by pointers, with steps and offsets of all kinds, nested, with
early ends, over arrays of lengths at the edges of strips; a seed is printed, and HINTERLAND_TEST_SEED gives it back.
With csmith installed, programs of its are compared as well, natively and with their hints on."""
import os
import random
import shutil
import sys
import tempfile

from common import Runner, call, expect, skip_without

LENGTHS = [0, 1, 2, 3, 5, 31, 32, 33, 511, 513, 32767, 32768, 32769, 65536, 65537, 131072, 200001]


class Program:
    def __init__(self, chance):
        self.chance, self.functions = chance, []

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
        lengths = ", ".join(map(str, LENGTHS))
        return ("#include <stdio.h>\n#include <stdlib.h>\ntypedef unsigned u32;\ntypedef unsigned long u64;\n"
                "#define NOINLINE __attribute__((noinline)) static\n" + functions +
                "int main(void) {\n static const u64 lengths[] = {" + lengths + "};\n u64 s = 1;\n"
                " u32 *a = malloc(4 << 20), *b = malloc(4 << 20);\n"
                " for (u64 i = 0; i < 1 << 20; ++i) { a[i] = (u32)(i * 2654435761u); b[i] = (u32)(i ^ 77); }\n"
                " for (u64 l = 0; l < sizeof lengths / sizeof *lengths; ++l) {\n  const u64 n = lengths[l];\n  " +
                calls + "\n  printf(\"%lu %lx\\n\", n, s);\n }\n"
                " for (u64 i = 0; i < 1 << 20; ++i) s = s * 31 + a[i] + b[i];\n printf(\"%lx\\n\", s);\n return 0;\n}\n")


def compare(source, plugin, runner, folder, options, seed):
    """Of one program: the results of the plain one, and those of the hinted ones."""
    call(["clang-19", "-O0", "-w", *options, source, "-o", folder + "/plain"])
    expected = call(["timeout", "20", folder + "/plain"]).stdout
    for level in ["-O1", "-O2", "-O3"]:
        call(["clang-19", level, "-w", f"-fpass-plugin={plugin}", *options, source, "-o", folder + "/hinted"])
        expect(call([folder + "/hinted"]).stdout == expected, f"seed {seed} {level}: natively")
        output, _ = runner.far([folder + "/hinted"], "4M")
        expect(output == expected, f"seed {seed} {level}: far")


def csmith_programs(count, seed, plugin, runner, folder):
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
        compare(source, plugin, runner, folder, [f"-I{include}"], f"csmith {seed + i}")
        done += 1
        if done == count:
            break
    print(f"{done} programs of csmith are equal")


def main():
    plugin, preload = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 6
    skip_without("clang-19")
    seed = int(os.environ.get("HINTERLAND_TEST_SEED") or random.randrange(1 << 30))
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(preload, folder)
        for i in range(count):
            source = folder + "/loops.c"
            with open(source, "w") as file:
                file.write(Program(random.Random(seed + i)).text())
            compare(source, plugin, runner, folder, [], seed + i)
        print(f"{count} programs of loops are equal")
        csmith_programs(max(1, count // 2), seed, plugin, runner, folder)


if __name__ == "__main__":
    main()
