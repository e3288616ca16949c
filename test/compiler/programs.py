#!/usr/bin/env python3
"""Programs compiled plain and hinted: programs.py PLUGIN PRELOADED NAME

Equal output natively and far at each level of optimisation: with 4 MiB local (some 10 %), and one with 10 MiB (25 %)."""
import pathlib
import sys
import tempfile

from common import HERE, Runner, call, expect, sites_in, skip_without

# name: source, compiler, sets of options
PROGRAMS = {
    "tree": ("tree.c", "clang-19", [["-O1"], ["-O2", "-g"], ["-O3", "-march=native"], ["-Os", "-no-pie"]]),
    "arrays": ("arrays.c", "clang-19", [["-O1"], ["-O2", "-g"], ["-O3", "-march=native"],
                                        ["-O2", "-fno-vectorize", "-fno-unroll-loops"], ["-O2", "-mavx2"]]),
    "words": ("words.cpp", "clang++-19", [["-O1"], ["-O2", "-g"], ["-O3", "-ffunction-sections", "-Wl,--gc-sections"]]),
    "lto": ("words.cpp", "clang++-19", [["-O2", "-flto", "-fuse-ld=lld"], ["-O2", "-flto=thin", "-fuse-ld=lld"]]),
    "fortran": ("arrays.f90", "flang-new-19", [["-O1"], ["-O3", "-g"]]),
}
FAR = ["4M", "10M"]


def supported(options, folder):
    """-mavx2 where the processor has no AVX2 would be a crash of the plain program."""
    if "-mavx2" not in options:
        return True
    return "avx2" in pathlib.Path("/proc/cpuinfo").read_text()


def check(name, plugin, preload, folder):
    source, compiler, variants = PROGRAMS[name]
    runner = Runner(preload, folder)
    source, plain = HERE / "programs" / source, folder + "/plain"
    its_own = ["-module-dir", folder] if name == "fortran" else ["-pthread"]  # which flang does not know
    call([compiler, "-O2", *its_own, source, "-o", plain])
    expected = call([plain]).stdout
    expect(expected, "the plain program prints something")
    for number, options in enumerate(v for v in variants if supported(v, folder)):
        hinted = f"{folder}/hinted{number}"
        call([compiler, f"-fpass-plugin={plugin}", *its_own, *options, source, "-o", hinted])
        expect(call([hinted]).stdout == expected, f"{name} {options}: natively as plain")
        for local in FAR if number == 1 else FAR[:1]:
            output, messages = runner.far([hinted], local)
            expect(output == expected, f"{name} {options}: with {local} local as natively")
            sites = sites_in(messages, hinted)
            expect(sites and sites[0] == sites[1] > 0, f"{name} {options}: its hints are on: {sites}\n{messages}")
            print(f"{name} {' '.join(options)}: equal with {local}, {sites[0]} hints")


def check_without_optimisation(plugin, folder):
    """At -O0 nothing is hinted, and nothing of ours is in the program."""
    call(["clang-19", "-O0", f"-fpass-plugin={plugin}", HERE / "programs" / "tree.c", "-o", folder + "/O0"])
    expect(b"hinterland" not in call(["readelf", "-SW", folder + "/O0"]).stdout, "no sections of ours at -O0")


def check_inlined_by_the_linker(plugin, preload, folder):
    """What calls writes below the stack pointer, also in a function that had no hints when it was compiled."""
    options, built = ["-O2", "-flto", "-pthread"], [folder + "/caller.o", folder + "/callee.o"]
    call(["clang-19", *options, "-c", HERE / "programs" / "red_zone_caller.c", "-o", built[0]])
    call(["clang-19", *options, f"-fpass-plugin={plugin}", "-c", HERE / "programs" / "red_zone_callee.c", "-o", built[1]])
    program = folder + "/inlined"
    call(["clang-19", *options, "-fuse-ld=lld", *built, "-o", program])
    symbols = call(["nm", program]).stdout.decode()
    expect(" leaf" in symbols and " steps" not in symbols, "steps() is inlined into leaf()")
    expected = call([program]).stdout
    output, messages = Runner(preload, folder).far([program], "4M")
    sites = sites_in(messages, program)
    expect(sites and sites[0] == sites[1] > 0, f"its hints are on: {sites}\n{messages}")
    expect(output == expected, f"inlined by the linker: far as natively: {output}, {expected}")


def main():
    plugin, preload, name = sys.argv[1:]
    skip_without(PROGRAMS[name][1], *(["ld.lld-19"] if name == "lto" else []))
    with tempfile.TemporaryDirectory() as folder:
        check(name, plugin, preload, folder)
        if name == "tree":
            check_without_optimisation(plugin, folder)
        if name == "lto":
            check_inlined_by_the_linker(plugin, preload, folder)


if __name__ == "__main__":
    main()
