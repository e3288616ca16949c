#!/usr/bin/python3
"""Starts a memcached by the words given, fills it, looks things up at random, and stops it with SIGTERM.

    load.py ITEMS LOOKUPS WORD...

The words begin a memcached on port 11411 of this machine (-p 11411), under whatever stands before it. Prints the
lookups a second. Exit status 1 when it does not start, or a value is not what was stored.
"""

import random
import signal
import socket
import subprocess
import sys
import time

PORT, PIPELINE, START_SECONDS = 11411, 50, 60


def value_of(item):
    return f"{item:08}" * 64


def connect(server):
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            connection = socket.create_connection(("127.0.0.1", PORT))
            return connection, connection.makefile("rb")
        except ConnectionRefusedError:
            time.sleep(0.05)
    sys.exit("load.py: the server does not listen; its message is above")


def in_batches(items):
    for first in range(0, len(items), PIPELINE):
        yield items[first:first + PIPELINE]


def fill(connection, answers, count):
    for batch in in_batches(range(count)):
        connection.sendall(b"".join(f"set key:{i} 0 0 512\r\n{value_of(i)}\r\n".encode() for i in batch))
        for _ in batch:
            if answers.readline() != b"STORED\r\n":
                sys.exit("load.py: a value was not stored: give the server more memory (-m)")


def look_up(connection, answers, items):
    for batch in in_batches(items):
        connection.sendall(b"".join(f"get key:{i}\r\n".encode() for i in batch))
        for i in batch:
            answers.readline()
            if answers.readline() != value_of(i).encode() + b"\r\n" or answers.readline() != b"END\r\n":
                sys.exit(f"load.py: key:{i} is not what was stored")


def main():
    count, lookups, words = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    server = subprocess.Popen(words)
    try:
        connection, answers = connect(server)
        fill(connection, answers, count)
        generator = random.Random(1)
        items = [generator.randrange(count) for _ in range(lookups)]
        begun = time.monotonic()
        look_up(connection, answers, items)
        print(f"{lookups / (time.monotonic() - begun):.0f} lookups a second")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)


if __name__ == "__main__":
    main()
