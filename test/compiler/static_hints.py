#!/usr/bin/env python3
"""Static hints: equal results, on without patching, also where text may not be written. static_hints.py PLUGIN PRELOADED"""
import ctypes
import os
import sys
import tempfile

from common import HERE, Runner, call, expect, sites_in, skip_without, with_static_hints

SET_MDWE, REFUSE_EXEC_GAIN = 65, 1  # of prctl(2), Linux 6.3: no memory becomes executable that was not


def built(plugin, source, program, *options, static=True):
    inserted = with_static_hints(plugin) if static else [f"-fpass-plugin={plugin}"]
    call(["clang-19", *inserted, *options, HERE / "programs" / source, "-o", program])
    return program


def check_results(plugin, runner, folder):
    for source, options in [("tree.c", ["-O1"]), ("tree.c", ["-O2", "-g"]), ("arrays.c", ["-O2"]), ("arrays.c", ["-O3", "-march=native"])]:
        call(["clang-19", "-O0", HERE / "programs" / source, "-o", folder + "/plain"])
        expected = call([folder + "/plain"]).stdout
        program = built(plugin, source, folder + "/static", *options)
        expect(call([program]).stdout == expected, f"{source} {options}: natively")
        output, messages = runner.far([program], "4M")
        on, of = sites_in(messages, program)
        expect(output == expected and on == of > 0, f"{source} {options}: far: {on} of {of}")


def check_counting_and_profiles(plugin, runner, folder):
    """They are counted as others are, and on whatever a profile says."""
    program, profile = built(plugin, "tree.c", folder + "/counted", "-O2"), folder + "/profile"
    runner.far([program, "4"], "4M", HINTERLAND_RECORD_SITES=profile)
    lines = open(profile).read().splitlines()
    counted = [tuple(map(int, line.split())) for line in lines[2:]]
    expect(sum(passes for _, passes, _ in counted) > 100000 and any(misses > 100 for _, _, misses in counted), f"{counted}")
    open(profile, "w").write("\n".join(lines[:2]) + "\n")
    _, messages = runner.far([program, "4"], "4M", HINTERLAND_SITES=profile)
    on, of = sites_in(messages, program)
    expect(on == of, f"{on} of {of}")


def check_hardened(plugin, runner, folder):
    """Where text may not be written: a child of this process, which has said so of itself."""
    static = built(plugin, "tree.c", folder + "/hardened", "-O2")
    patched = built(plugin, "tree.c", folder + "/patched", "-O2", static=False)
    expected = call([static, "4"]).stdout
    child = os.fork()
    if child != 0:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        expect(status in (0, 77), "the hardened child said why")
        return
    if ctypes.CDLL(None, use_errno=True).prctl(SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0) != 0:
        print("this kernel cannot refuse executable memory: that is left out")
        os._exit(77)
    try:
        output, messages = runner.far([static, "4"], "4M")
        on, of = sites_in(messages, static)
        expect(output == expected and on == of > 0, f"static hints are on: {messages}")
        output, messages = runner.far([patched, "4"], "4M")
        expect(output == expected and "its text cannot be written" in messages, f"patched ones cannot be: {messages}")
        print(f"hardened: {on} static hints are on, patched ones are not")
    except SystemExit as problem:
        print(problem)
        sys.stdout.flush()
        os._exit(1)
    sys.stdout.flush()
    os._exit(0)


def main():
    plugin, preload = sys.argv[1:]
    skip_without("clang-19")
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(preload, folder)
        check_results(plugin, runner, folder)
        check_counting_and_profiles(plugin, runner, folder)
        check_hardened(plugin, runner, folder)


if __name__ == "__main__":
    main()
