#!/usr/bin/env python3
"""Runs compare.py as a user without privileges, but for the one that faults inside system calls need.

unprivileged.py LIBRARY PROGRAM [ARGUMENT...]

Skips (77) where that is not possible: not root, no setpriv, or the user cannot read the programs.
"""
import os
import shutil
import subprocess
import sys

USER = 65534
COMPARE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compare.py")


def main():
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        print("needs root and setpriv", file=sys.stderr)
        return 77
    become = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--inh-caps=-all,+sys_ptrace",
              "--ambient-caps=-all,+sys_ptrace", "--bounding-set=-all,+sys_ptrace"]
    reads = ["sh", "-c", 'for file; do test -r "$file" || exit 1; done', "sh", COMPARE, *sys.argv[1:3]]
    if subprocess.run(become + reads, check=False).returncode != 0:
        print("another user cannot read the programs, or setpriv cannot become one", file=sys.stderr)
        return 77
    return subprocess.run([*become, sys.executable, "-B", COMPARE, *sys.argv[1:]], cwd="/", check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
