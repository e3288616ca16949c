"""Text for sort: the logs of eight machines one after the other, each in the order of its clock; the same at each call."""

import random

MACHINES = 8
_VERBS = ("GET", "GET", "GET", "POST", "PUT", "DELETE")
_PLACES = ("orders", "customers", "items", "baskets", "invoices", "sessions", "prices", "stock")


def _of_one(machine, count, bits):
    """`count` lines of a day."""
    for number in range(count):
        millisecond = number * 86_400_000 // count + bits(8)
        second, rest = divmod(millisecond, 1000)
        yield (f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.{rest:03d} web{machine} {_VERBS[bits(8) % 6]} "
               f"/{_PLACES[bits(3)]}/{bits(20)} {bits(13)} ms\n")


def write(path, count):
    numbers = random.Random(2024)
    with open(path, "w", encoding="ascii") as file:
        for machine in range(MACHINES):
            first, last = count * machine // MACHINES, count * (machine + 1) // MACHINES
            file.writelines(_of_one(machine, last - first, numbers.getrandbits))
