#!/usr/bin/python3
"""An application refuses options that cannot be: exit status 2, a message on standard error, and no result.

refuses.py APP MESSAGE OPTION...
"""
import subprocess
import sys


def main():
    app, message, *options = sys.argv[1:]
    done = subprocess.run([app, *options], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2, f"exit status {done.returncode}\n{done.stdout}{done.stderr}"
    assert done.stdout == "", f"a result all the same: {done.stdout}"
    assert message in done.stderr, f"the message does not say '{message}': {done.stderr}"


if __name__ == "__main__":
    main()
