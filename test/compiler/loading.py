#!/usr/bin/env python3
"""Libraries with hints: loaded, closed and loaded again; with hidden calls; and a profile. loading.py PLUGIN PRELOADED"""
import os
import re
import sys
import tempfile

from common import HERE, Runner, call, expect, sites_in, skip_without

PROGRAMS = HERE / "programs"


def build(plugin, folder):
    call(["clang-19", "-O2", f"-fpass-plugin={plugin}", "-fPIC", "-shared", PROGRAMS / "library.c", "-o",
          folder + "/library.so"])
    call(["clang-19", "-O2", f"-fpass-plugin={plugin}", PROGRAMS / "loading.c", "-o", folder + "/loading"])
    call(["clang-19", "-O2", f"-fpass-plugin={plugin}", PROGRAMS / "tree.c", "-o", folder + "/tree"])


def check_loading(runner, folder):
    command = [folder + "/loading", folder + "/library.so"]
    expected = call(command).stdout
    output, messages = runner.far(command, "6M")
    expect(output == expected, "loaded thrice, far as natively")
    expect(messages.count("library.so: ") == 3, f"its hints are on each time:\n{messages}")


def check_text_is_not_writable(runner, folder):
    """After the start, no mapping of the process is both writable and executable."""
    probe = folder + "/maps.c"
    with open(probe, "w") as source:
        source.write("#include <stdio.h>\nlong look(long* p) { return p[*p]; }\nint main(void) { long p[2] = {1, 7}; char line[512];\n"
                     "FILE* maps = fopen(\"/proc/self/maps\", \"r\");\n"
                     "while (fgets(line, sizeof line, maps)) fputs(line, stdout);\nreturn look(p) != 7; }\n")
    call(["clang-19", "-O2", f"-fpass-plugin={sys.argv[1]}", probe, "-o", folder + "/maps"])
    output, messages = runner.far([folder + "/maps"], "6M")
    expect(sites_in(messages, folder + "/maps")[0] > 0, "it has hints")
    expect(b"/maps\n" in output and b"wxp" not in output.replace(b"rwxs", b""), f"no writable text:\n{output.decode()}")


def check_other_version(runner, folder):
    """A module of a compiler that is newer than the runtime runs without its hints, and that is said."""
    with open(folder + "/newer.c", "w") as source:
        source.write("#include <stdint.h>\n#include <stdio.h>\n"
                     "struct module { uint32_t version, entry_bytes; const void *first, *end; void (*checks[4])(void); };\n"
                     "extern void hl_hinted_module(struct module*) __attribute__((weak));\n"
                     "int main(void) { struct module newer = {2, 12, &newer, &newer, {0}};\n"
                     "if (hl_hinted_module) hl_hinted_module(&newer);\nreturn newer.checks[0] != 0; }\n")
    call(["clang-19", "-fPIE", "-pie", folder + "/newer.c", "-o", folder + "/newer"])
    _, messages = runner.far([folder + "/newer"], "4M")
    expect("hints by the compiler of version 2, and this runtime knows version 1" in messages, messages)


def check_registers(runner, folder):
    """The slow path and the counting checks keep all registers, thousands of times, with pages that have to come."""
    call(["clang-19", "-O2", f"-fpass-plugin={sys.argv[1]}", PROGRAMS / "registers.c", "-o", folder + "/registers"])
    expected = call([folder + "/registers"]).stdout
    for extra in [{}, {"HINTERLAND_RECORD_SITES": folder + "/registers.counted"}]:
        output, _ = runner.far([folder + "/registers"], "4M", **extra)
        expect(output == expected and output.startswith(b"0 registers changed"), f"{output} {extra}")
    counted = open(folder + "/registers.counted").read()
    expect(re.search(r"^\d+ 8192 [1-9]\d{3}$", counted, re.MULTILINE), f"8192 passes, most of them misses:\n{counted}")


def check_profile(runner, folder):
    program, sites = folder + "/tree", folder + "/tree.sites"
    command = [program, "4"]
    expected = call(command).stdout
    output, _ = runner.far(command, "4M", HINTERLAND_RECORD_SITES=folder + "/recorded.%p")
    expect(output == expected, "counting changes nothing")
    written = [name for name in os.listdir(folder) if name.startswith("recorded.")]
    expect(len(written) == 1, f"one profile is written: {written}")
    os.rename(f"{folder}/{written[0]}", sites)
    lines = open(sites).read().splitlines()
    expect(lines[0] == "hinterland sites 1" and lines[1].startswith("module "), f"a profile: {lines[:2]}")
    counts = [tuple(map(int, line.split())) for line in lines[2:]]
    worth = sum(misses > 0 and misses >= passes // 1000 for _, passes, misses in counts)
    expect(0 < worth <= len(counts) and sum(c[1] for c in counts) > 100000, f"passes and misses: {counts}")

    output, messages = runner.far(command, "4M")  # beside the program
    on, of = sites_in(messages, program)
    expect(output == expected and on == worth < of, f"{on} of {of} are on, as {worth} are worth it")

    # None at all, by a file that is named.
    none = folder + "/none.sites"
    open(none, "w").write("\n".join(lines[:2]) + "\n")
    output, messages = runner.far(command, "4M", HINTERLAND_SITES=none)
    expect(output == expected and sites_in(messages, program)[0] == 0, "none is on")

    wrong = folder + "/wrong.sites"
    command = [program, "100"]
    expected = call(command).stdout
    for text, said in [("something\n", "its first line is not"), (lines[0] + "\n1 2 3\n", "line 2 of it is none"),
                       (lines[0] + "\n" + lines[1] + "\n99999 1 1\n", "line 3 of it is none"),
                       (lines[0] + "\nmodule 1 11 " + program + "\n", "another build"), (None, "No such file")]:
        if text is None:
            os.remove(wrong)
        else:
            open(wrong, "w").write(text)
        output, messages = runner.far(command, "4M", HINTERLAND_SITES=wrong)
        expect(said in messages and "all" in messages, f"{text!r}: it is said that {said!r}:\n{messages}")
        expect(output == expected and sites_in(messages, program) == (of, of), f"{text!r}: all hints are on")

    output, messages = runner.far(command, "4M", HINTERLAND_RECORD_SITES="/nowhere/at.all")
    expect(output == expected and "could not be written" in messages, "a profile that cannot be written is said")


def main():
    plugin, preload = sys.argv[1:]
    skip_without("clang-19")
    with tempfile.TemporaryDirectory() as folder:
        build(plugin, folder)
        runner = Runner(preload, folder)
        check_loading(runner, folder)
        check_text_is_not_writable(runner, folder)
        check_other_version(runner, folder)
        check_registers(runner, folder)
        check_profile(runner, folder)


if __name__ == "__main__":
    main()
