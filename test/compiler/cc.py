#!/usr/bin/env python3
"""hinterland cc: hints with clang 19; with anything else one message and the plain program. cc.py HINTERLAND"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from common import expect, skip_without

HINTERLAND = os.path.abspath(sys.argv[1])
SOURCE = "#include <stdio.h>\nlong look(long** p, long i) { return *p[i]; }\nint main(void) { long v = 42, *p[1] = {&v}; printf(\"%ld\\n\", look(p, 0)); return 0; }\n"


def cc(*words, path=None):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HINTERLAND_")}
    if path:
        environment["PATH"] = path + ":" + environment["PATH"]
    return subprocess.run([HINTERLAND, "cc", *words], env=environment, capture_output=True, text=True, timeout=100)


def is_hinted(file):
    return "hinterland_sites" in subprocess.run(["readelf", "-SW", file], capture_output=True, text=True, check=True).stdout


def made_compiler(folder, name, first_line):
    """A compiler that says it is another, and otherwise is gcc."""
    path = pathlib.Path(folder, name)
    path.write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && {{ echo '{first_line}'; exit 0; }}\nexec gcc \"$@\"\n")
    path.chmod(0o755)
    return str(path)


def check_hints(folder):
    program = folder + "/hinted"
    done = cc("--", "clang-19", "-O2", "-Rpass=hinterland", folder + "/a.c", "-o", program)
    expect(done.returncode == 0 and is_hinted(program), f"hinted: {done.stderr}")
    expect("a.c:2:" in done.stderr and "read of memory that may be far: hinted" in done.stderr, f"a remark with its line: {done.stderr}")
    expect(subprocess.run([program], capture_output=True, text=True).stdout == "42\n", "it runs")
    expect(cc("clang-19", "-c", "-O2", folder + "/a.c", "-o", folder + "/a.o").returncode == 0, "without --, too")
    done = cc("--", "clang-19", folder + "/a.o", "-o", program)
    expect(done.returncode == 0 and done.stderr == "" and is_hinted(program), f"linking says nothing: {done.stderr}")
    done = cc("--", "clang-19", "-O2", "-save-stats", "-c", folder + "/a.c", "-o", folder + "/s.o")
    counts = json.loads(pathlib.Path("a.stats").read_text())
    expect(counts.get("hinterland.Sites") == 2 and counts.get("hinterland.Accesses") == 2, f"statistics: {counts}")
    if shutil.which("ccache"):
        done = cc("--", "ccache", "clang-19", "-O2", "-c", folder + "/a.c", "-o", folder + "/b.o")
        expect(done.returncode == 0 and is_hinted(folder + "/b.o"), f"behind ccache: {done.stderr}")


def check_objects(folder):
    """With --objects guards as well; what only links says nothing, and with another compiler it is as without."""
    program, has_guards = folder + "/guarded", lambda file: b"__hinterland_guards" in pathlib.Path(file).read_bytes()
    done = cc("--objects", "--", "clang-19", "-O2", "-Rpass=hinterland", folder + "/a.c", "-o", program)
    expect(done.returncode == 0 and is_hinted(program) and has_guards(program), f"guards: {done.stderr}")
    expect("read of memory that may be far: guarded" in done.stderr, f"a remark: {done.stderr}")
    expect(subprocess.run([program], capture_output=True, text=True).stdout == "42\n", "it runs")
    done = cc("--objects", "clang-19", "-c", "-O2", folder + "/a.c", "-o", folder + "/a.o")
    expect(done.returncode == 0 and done.stderr == "" and has_guards(folder + "/a.o"), f"without --, too: {done.stderr}")
    done = cc("--objects", "--", "clang-19", folder + "/a.o", "-o", program)
    expect(done.returncode == 0 and done.stderr == "", f"linking says nothing: {done.stderr}")
    done = cc("--", "clang-19", "-O2", "-c", folder + "/a.c", "-o", folder + "/a.o")
    expect(done.returncode == 0 and not has_guards(folder + "/a.o"), "none unless they are asked for")
    done = cc("--objects", "--", "gcc", "-O2", folder + "/a.c", "-o", program)
    expect(done.returncode == 0 and "built without hints" in done.stderr and not has_guards(program), f"gcc: {done.stderr}")


def check_static_hints(folder):
    """Hints that are compiled in: a table as ever, and no nops; beside guards as well."""
    program = folder + "/static"
    done = cc("--static-hints", "--", "clang-19", "-O2", "-Rpass=hinterland", folder + "/a.c", "-o", program)
    expect(done.returncode == 0 and is_hinted(program) and "hinted" in done.stderr, f"hinted: {done.stderr}")
    code = subprocess.run(["objdump", "-d", program], capture_output=True, text=True, check=True).stdout
    look = code.split("<look>:")[1].split("\n\n")[0]
    expect("cmpq" in look and "call" in look and "nop" not in look.split("ret")[0], f"a comparison and a call: {look}")
    expect(subprocess.run([program], capture_output=True, text=True).stdout == "42\n", "it runs")
    done = cc("--objects", "--static-hints", "clang-19", "-O2", "-c", folder + "/a.c", "-o", folder + "/a.o")
    expect(done.returncode == 0 and done.stderr == "" and b"__hinterland_guards" in pathlib.Path(folder, "a.o").read_bytes(),
           f"both: {done.stderr}")


def check_others(folder):
    others = [("gcc", "is not clang"),
              (made_compiler(folder, "clang-18", "Debian clang version 18.1.8 (1)"), "is version 18"),
              (made_compiler(folder, "clang-20", "clang version 20.1.0"), "is version 20"),
              (made_compiler(folder, "clang-odd", "clang version of tomorrow"), "is not clang")]
    for compiler, said in others:
        program = folder + "/plain"
        done = cc("--", compiler, "-O2", folder + "/a.c", "-o", program)
        expect(done.returncode == 0 and not is_hinted(program), f"{compiler}: the plain program is built: {done.stderr}")
        expect(said in done.stderr and "built without hints" in done.stderr and done.stderr.count("\n") == 1,
               f"{compiler}: one message, that it {said}: {done.stderr}")


def check_without_plugin(folder):
    """A command that is installed without the plug-in."""
    command = pathlib.Path(folder, "bin", "hinterland")
    command.parent.mkdir()
    shutil.copy2(HINTERLAND, command)
    done = subprocess.run([command, "cc", "--", "clang-19", "-O2", folder + "/a.c", "-o", folder + "/without"],
                          capture_output=True, text=True, timeout=100)
    expect(done.returncode == 0 and not is_hinted(folder + "/without"), f"the plain program is built: {done.stderr}")
    expect("libhinterland-pass.so is not in" in done.stderr and "make compiler" in done.stderr and
           done.stderr.count("\n") == 1, f"one message: {done.stderr}")


def check_errors(folder):
    for words, status, said in [([], 2, "no compiler given"), (["--"], 2, "no compiler given"),
                                (["-O2"], 2, "no option '-O2'"), (["--objects"], 2, "no compiler given"),
                                (["--objects", "-O2"], 2, "no option '-O2'"), (["--", folder + "/none"], 127, "cannot be executed"),
                                (["--", folder + "/a.c"], 126, "cannot be executed")]:
        done = cc(*words)
        expect(done.returncode == status and said in done.stderr, f"{words}: {done.returncode} {done.stderr}")
    pathlib.Path(folder, "bad.c").write_text("int main(void) { return nothing; }\n")
    done = cc("--", "clang-19", "-O2", folder + "/bad.c", "-o", folder + "/bad")
    expect(done.returncode == 1 and "undeclared" in done.stderr, f"the compiler's own errors are its own: {done}")


def main():
    skip_without("clang-19", "gcc")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # where the compiler writes its statistics
        pathlib.Path(folder, "a.c").write_text(SOURCE)
        check_hints(folder)
        check_objects(folder)
        check_static_hints(folder)
        check_others(folder)
        check_without_plugin(folder)
        check_errors(folder)


if __name__ == "__main__":
    main()
