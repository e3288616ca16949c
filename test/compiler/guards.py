#!/usr/bin/env python3
"""Programs compiled plain and with guards: guards.py PLUGIN PRELOADED NAME

Equal output natively and far, with a quarter of their memory local; and their heap is in the object window."""
import sys
import tempfile

from common import HERE, Runner, call, expect, skip_without, with_guards

# Also where the cost model says that guards are cheaper.
ALL_COPIES = ["-Xclang", "-mllvm", "-Xclang", "-hinterland-copies=all"]
# name: source, compiler, sets of options
PROGRAMS = {
    "tree": ("tree.c", "clang-19", [["-O1"], ["-O2", "-g"], ["-Os", "-no-pie"]]),
    "arrays": ("arrays.c", "clang-19", [["-O2", "-g"], ["-O3", "-march=native"]]),
    "words": ("words.cpp", "clang++-19", [["-O1"], ["-O2", "-g"]]),
    "all": ("guarded.cpp", "clang++-19", [["-O1"], ["-O3", "-march=native"]]),
    "copies": ("copies.c", "clang-19", [["-O1"], ["-O2", "-g"], ["-O2", *ALL_COPIES, "-fno-vectorize"],
                                        ["-O3", "-march=native", *ALL_COPIES]]),
    "lto": ("guarded.cpp", "clang++-19", [["-O2", "-flto", "-fuse-ld=lld"]]),
}
# Half of it for objects, of which 8 MiB are the least that there can be.
LOCAL = "16M"


def check(name, plugin, preload, folder):
    source, compiler, variants = PROGRAMS[name]
    runner = Runner(preload, folder)
    source, plain = HERE / "programs" / source, folder + "/plain"
    call([compiler, "-O2", "-pthread", source, "-o", plain])
    expected = call([plain]).stdout
    expect(expected, "the plain program prints something")
    for number, options in enumerate(variants):
        guarded = f"{folder}/guarded{number}"
        call([compiler, *with_guards(plugin), "-pthread", *options, source, "-o", guarded])
        expect(call([guarded]).stdout == expected, f"{name} {options}: natively as plain")
        output, messages = runner.far([guarded], LOCAL)
        expect(output == expected, f"{name} {options}: far as natively:\n{output}\n{expected}")
        if "keeps its heap on pages" in messages and "far objects" not in messages:
            print(f"skipped: no object window here: {messages}")
            sys.exit(77)
        expect("is in the object window" in messages, f"{name} {options}: its heap is in the window\n{messages}")
        output, _ = runner.far([plain], LOCAL)
        expect(output == expected, f"{name}: the plain program, far")
        print(f"{name} {' '.join(options)}: equal with {LOCAL}")


def check_refusals(plugin, preload, folder):
    """Where there can be no window, one message, and the heap is on pages."""
    guarded = folder + "/guarded"
    call(["clang-19", "-O2", *with_guards(plugin), HERE / "programs" / "tree.c", "-o", guarded])
    expected = call([guarded]).stdout
    runner = Runner(preload, folder)
    for extra, said in [({"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}, "no restartable sequences")]:
        output, messages = runner.far([guarded], LOCAL, **extra)
        expect(output == expected, f"{extra}: equal")
        expect(said in messages and "keeps its heap on pages" in messages, f"{extra}: {messages}")
    output, messages = runner.far([guarded], "6M")
    expect(output == expected and "keeps its heap on pages" in messages, f"too little for objects: {messages}")


def check_profile(plugin, preload, folder):
    """A run counts, others read it: which sizes of blocks are objects. What is wrong with a profile is said."""
    guarded = folder + "/guarded"
    call(["clang-19", "-O2", *with_guards(plugin), HERE / "programs" / "copies.c", "-o", guarded])
    expected = call([guarded]).stdout
    runner = Runner(preload, folder)
    output, messages = runner.far([guarded], LOCAL, HINTERLAND_RECORD_SITES=folder + "/made.sites")
    if "keeps its heap on pages" in messages:
        print(f"skipped: no object window here: {messages}")
        sys.exit(77)
    expect(output == expected, "counting: equal")
    lines = [line for line in open(folder + "/made.sites.objects") if not line.startswith("#")]
    expect(lines[0] == "hinterland objects 1\n", lines[:2])
    counts = [[int(word) for word in line.split()] for line in lines[1:]]
    expect(all(len(line) == 4 and line[0] % 16 == 0 and line[0] <= 2048 for line in counts), counts)
    expect(sum(line[1] for line in counts) > 10000 and sum(line[2] for line in counts) > 1000, counts)
    expect(all(line[3] <= line[2] for line in counts), "no more pages than objects")
    said = "says which sizes of blocks are objects"
    output, messages = runner.far([guarded], LOCAL, HINTERLAND_SITES=folder + "/made.sites")
    expect(output == expected and said in messages, messages)
    with open(folder + "/none.sites.objects", "w") as file:  # all on pages
        file.write("hinterland objects 1\n")
    output, messages = runner.far([guarded], LOCAL, HINTERLAND_SITES=folder + "/none.sites")
    expect(output == expected and said in messages, messages)
    with open(folder + "/bad.sites.objects", "w") as file:
        file.write("hinterland objects 1\n17 1 1 1\n")
    output, messages = runner.far([guarded], LOCAL, HINTERLAND_SITES=folder + "/bad.sites")
    expect(output == expected and "line 2 of it is none of a profile of objects" in messages, messages)


def main():
    plugin, preload, name = sys.argv[1:]
    skip_without("clang-19", *(["ld.lld-19"] if name == "lto" else []))
    with tempfile.TemporaryDirectory() as folder:
        if name == "refusals":
            check_refusals(plugin, preload, folder)
        elif name == "profile":
            check_profile(plugin, preload, folder)
        else:
            check(name, plugin, preload, folder)


if __name__ == "__main__":
    main()
