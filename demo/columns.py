#!/usr/bin/python3
"""A job of demo/run: sales as NumPy columns, 56 bytes a row, and four questions about them.

    demo/columns.py ROWS
"""

import sys

import numpy

SHOPS, ITEMS, DAYS = 500, 20_000, 730


def main():
    rows = int(sys.argv[1])
    random = numpy.random.default_rng(2024)
    day = numpy.arange(rows) * DAYS // rows
    shop = random.integers(0, SHOPS, rows)
    item = random.integers(0, ITEMS, rows)
    pieces = random.integers(1, 9, rows)
    price = numpy.floor(random.lognormal(3, 1, rows) * 100)  # in cents: sums of them are exact
    cost = numpy.floor(price * 0.7)
    revenue = price * pieces

    by_shop = numpy.bincount(shop, revenue)
    by_day = numpy.bincount(day, revenue)
    by_item = numpy.bincount(item, pieces)
    print("best shops:", *(f"{number} {by_shop[number] / 100:.2f}" for number in numpy.argsort(-by_shop)[:3]))
    print("best day:", int(by_day.argmax()), f"{by_day.max() / 100:.2f}")
    print("most sold:", *(int(number) for number in numpy.argsort(-by_item, kind="stable")[:3]))
    print("profit:", f"{(revenue.sum() - (cost * pieces).sum()) / 100:.2f}")
    dear = price > 10_000
    print("of dear pieces:", int(dear.sum()), f"{revenue[dear].sum() / 100:.2f}")


if __name__ == "__main__":
    main()
