#!/usr/bin/env python3
"""Regions on devices of their own, in a program that is not linked, one that is, and one under `hinterland run`; and the
loss of the server that holds one.

test_devices.py HINTERLAND PLAIN LINKED
"""
import os
import subprocess
import sys

SKIPPED = 77
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("HINTERLAND_")}


def run(words, **variables):
    done = subprocess.run(words, env={**ENVIRONMENT, **variables}, capture_output=True, text=True, timeout=100,
                          check=False)
    print(words, variables, done.returncode, done.stdout.strip(), done.stderr.strip())
    return done


def expect_right(done):
    assert done.returncode == 0 and done.stdout.strip().endswith("0 wrong"), "not as expected"


def lose_server(hinterland, words, **variables):
    """Ends the server as soon as the program has filled its region."""
    with subprocess.Popen([hinterland, "serve", "--listen", "127.0.0.1:0", "--memory", "64M"], env=ENVIRONMENT,
                          stdout=subprocess.PIPE, text=True) as server:
        try:
            address = server.stdout.readline().split()[2].rstrip(",")
            with subprocess.Popen([*words, "loss", "tcp://" + address], env={**ENVIRONMENT, **variables},
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
                said = program.stdout.readline()
                server.kill()
                server.wait()
                rest, _ = program.communicate("\n", timeout=100)
                print(words, said, rest)
                assert (said, rest, program.returncode) == ("ready\n", "0 wrong\n", 0), "not as expected"
        finally:
            server.kill()


def main():
    hinterland, plain, linked = sys.argv[1:]
    far = {"HINTERLAND_LOCAL": "8M", "HINTERLAND_FAR": "mem:", "HINTERLAND_TIMEOUT": "1s"}
    expect_right(run([plain, "ordinary"]))
    first = run([linked, "far"], **far)
    if "userfaultfd is not permitted" in first.stdout + first.stderr:
        return SKIPPED
    expect_right(first)
    library = os.path.join(os.path.dirname(os.path.dirname(hinterland)), "lib", "libhinterland-signal.so")
    expect_right(run([linked, "far"], **far, HINTERLAND_FAULT="signal", LD_PRELOAD=library))
    for device, program in ("sim:latency=20us,inner=mem:", linked), ("mem:", plain):
        before = [hinterland, "run", "--local", "8M", "--takeover", "start", "--far", device, "--timeout", "1s", "--"]
        expect_right(run([*before, program, "far"]))
    late = [hinterland, "run", "--local", "16M", "--takeover", "pressure", "--far", "zmem:", "--", plain, "far"]
    expect_right(run(late))
    lose_server(hinterland, [*before, plain])
    lose_server(hinterland, [linked], **far)
    return 0


if __name__ == "__main__":
    sys.exit(main())
