#!/usr/bin/env python3
"""The fiber server of examples/ with many connections at a time, natively and with most of its table far.

test_server.py PRELOADED_LIBRARY SERVER
"""
import collections
import os
import random
import select
import socket
import subprocess
import sys

SKIPPED = 77
CONNECTIONS, LINES = 60, 300


def talk(port, seed):
    """Sends lines on all connections at once; every answer has to be the line with its count so far."""
    randomly = random.Random(seed)
    peers = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(CONNECTIONS)]
    sent, got = [[] for _ in peers], collections.Counter()
    for number, peer in enumerate(peers):
        # Lines of its own, so that the answers do not depend on the order between connections; cut at any place.
        sent[number] = [f"{number}-{randomly.randrange(100)}" for _ in range(LINES)]
        peer.setblocking(False)
    unsent = [("\n".join(lines) + "\n").encode() for lines in sent]
    answers = [b""] * len(peers)
    expected = [LINES] * len(peers)
    while any(answer.count(b"\n") < count for answer, count in zip(answers, expected)):
        readable, writable, _ = select.select(peers, [p for p, u in zip(peers, unsent) if u], [], 60)
        assert readable or writable, f"nothing for a minute: {sum(a.count(b'%c' % 10) for a in answers)} answers"
        for peer in writable:
            at = peers.index(peer)
            unsent[at] = unsent[at][peer.send(unsent[at][:randomly.randrange(1, 200)]):]
        for peer in readable:
            more = peer.recv(65536)
            assert more, "the server closed a connection"
            answers[peers.index(peer)] += more
    for lines, answer in zip(sent, answers):
        for line, reply in zip(lines, answer.decode().splitlines(), strict=True):
            got[line] += 1
            assert reply == f"{got[line]} {line}", f"{reply!r} is not {got[line]} {line!r}"
    for peer in peers:
        peer.close()


def check(server, environment):
    process = subprocess.Popen([server, "0"], env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        first = process.stdout.readline().decode()
        if not first and environment and b"userfaultfd" in process.stderr.read():
            return SKIPPED
        talk(int(first.split()[1]), seed=1)
        assert process.poll() is None, "the server is gone"
    finally:
        process.kill()
        process.communicate()
    return 0


def main():
    library, server = sys.argv[1:]
    return check(server, {}) or check(server, {
        "LD_PRELOAD": library, "HINTERLAND_LOCAL": "16M", "HINTERLAND_TAKEOVER": "start",
        "HINTERLAND_FAR": "sim:latency=50us,inner=mem:"})


if __name__ == "__main__":
    sys.exit(main())
