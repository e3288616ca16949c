#!/usr/bin/env python3
"""multiprocessing with one start method: workers see what they should, results come back.  processes.py METHOD"""
import multiprocessing
import os
import subprocess
import sys

DATA = bytes(range(256)) * 4096 * 16  # 16 MiB, inherited by fork


def digest(data):
    return sum(data[::4099]) % 65521


def work(argument):
    number, table = argument
    mine = bytearray(DATA[:1 << 20])
    mine[number] ^= 0xff
    return number, digest(DATA), digest(mine), sum(table.values())


def child(connection, data):
    connection.send(digest(data))
    connection.send(digest(connection.recv_bytes()))
    connection.close()


def main():
    method = sys.argv[1]
    context = multiprocessing.get_context(method)
    table = {i: i * i for i in range(20000)}
    pool = context.Pool(3)
    for result in pool.map(work, [(number, table) for number in range(12)]):
        print(result)
    pool.close()
    pool.join()
    ours, theirs = context.Pipe()
    process = context.Process(target=child, args=(theirs, DATA[1:3 << 20]))
    process.start()
    print(ours.recv())
    ours.send_bytes(DATA[5:4 << 20])
    print(ours.recv())
    process.join()
    print(process.exitcode, digest(DATA))
    print(subprocess.run(["cat"], input=DATA[:1 << 20], stdout=subprocess.PIPE, check=True).stdout == DATA[:1 << 20])
    print(os.popen("echo from a shell").read(), end="")


if __name__ == "__main__":
    main()
