"""The work of the pandas test: pandas_work.py ROWS SEED prints one hash a step. All results are exact (integers)."""

import hashlib
import sys

import numpy as np
import pandas as pd


def show(what, frame):
    digest = hashlib.sha256(pd.util.hash_pandas_object(frame, index=True).values.tobytes()).hexdigest()
    print(what, digest, frame.shape, flush=True)


def work(rows, random):
    people = max(10, rows // 10)
    sales = pd.DataFrame({"person": random.integers(0, people, rows), "day": random.integers(0, 365, rows),
                          "cents": random.integers(1, 100_000, rows), "kind": random.integers(0, 40, rows)})
    persons = pd.DataFrame({"person": random.permutation(people), "town": random.integers(0, 500, people),
                            "name": [f"name-{n:x}" for n in random.integers(0, people, people)]})
    joined = sales.merge(persons, on="person")
    show("joined", joined)
    show("by town and kind", joined.groupby(["town", "kind"]).cents.agg(["sum", "min", "max", "count"]))
    show("sorted", joined.sort_values(["day", "cents", "person"], kind="stable").reset_index(drop=True))
    show("by day and kind", joined.pivot_table(index="day", columns="kind", values="cents", aggfunc="sum", fill_value=0))
    show("names", joined.name.value_counts().sort_index())
    show("running", joined.groupby("person").cents.cumsum().to_frame())
    show("upper", joined.name.str.upper().drop_duplicates().to_frame())


def main():
    random = np.random.default_rng(int(sys.argv[2]))
    for _ in range(2):
        work(int(sys.argv[1]), random)


main()
