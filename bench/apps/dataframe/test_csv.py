#!/usr/bin/python3
"""dataframe reads a file of trips in the public form, and says what is wrong with one that is not.

test_csv.py APP
"""
import datetime
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

HEADER = ("VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,passenger_count,trip_distance,pickup_longitude,"
          "pickup_latitude,RatecodeID,store_and_fwd_flag,dropoff_longitude,dropoff_latitude,payment_type,fare_amount,"
          "extra,mta_tax,tip_amount,tolls_amount,improvement_surcharge,total_amount").split(",")
EPOCH = datetime.datetime(1970, 1, 1)


def made_up(count):
    """Trips, as dictionaries of what stands in the file."""
    draw = random.Random(7)
    trips = []
    for _ in range(count):
        pickup = datetime.datetime(2016, draw.randint(1, 6), draw.randint(1, 28), draw.randint(0, 23), 59, 58)
        dropoff = pickup + datetime.timedelta(seconds=draw.randint(-5, 9000))
        trip = dict.fromkeys(HEADER, "0.5")
        trip |= {"VendorID": str(draw.choice((1, 2))), "tpep_pickup_datetime": str(pickup),
                 "tpep_dropoff_datetime": str(dropoff), "passenger_count": str(draw.randint(0, 9)),
                 "pickup_longitude": f"{draw.uniform(-75, -73):.6f}", "pickup_latitude": f"{draw.uniform(40, 42):.6f}",
                 "dropoff_longitude": f"{draw.uniform(-75, -73):.6f}", "dropoff_latitude": f"{draw.uniform(40, 42):.6f}",
                 "RatecodeID": "1", "payment_type": "2", "store_and_fwd_flag": draw.choice("NNNY")}
        trips.append(trip)
    return trips


def time_of(text):
    return datetime.datetime.fromisoformat(text)


def kilometres(trip):
    lon1, lat1, lon2, lat2 = (math.radians(float(trip[f"{end}_{part}"])) for end in ("pickup", "dropoff")
                              for part in ("longitude", "latitude"))
    a = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 2 * 6371 * math.asin(math.sqrt(a))


def listed(values):
    values = list(values)
    return [number for value in sorted(set(values)) for number in (value, values.count(value))]


def answers_to(trips):
    vendors = sorted({int(trip["VendorID"]) for trip in trips})
    pickups = [time_of(trip["tpep_pickup_datetime"]) for trip in trips]
    durations = [(time_of(trip["tpep_dropoff_datetime"]) - pickup).total_seconds()
                 for trip, pickup in zip(trips, pickups)]
    kept = [trip for trip in trips if trip["store_and_fwd_flag"] == "Y"]
    seconds = [(pickup - EPOCH).total_seconds() for pickup in pickups]

    def medians(part):
        return [number for key in sorted({part(pickup) for pickup in pickups}) for number in
                (key, statistics.median(d for d, pickup in zip(durations, pickups) if part(pickup) == key))]

    return {
        "vendors": [len(trips), *vendors],
        "passengers of vendor 1": listed(int(t["passenger_count"]) for t in trips if t["VendorID"] == "1"),
        "passengers of vendor 2": listed(int(t["passenger_count"]) for t in trips if t["VendorID"] == "2"),
        "durations": [sum(durations) / len(trips), min(durations), max(durations)],
        "stored and forwarded": [1 - len(kept) / len(trips), *sorted({int(trip["VendorID"]) for trip in kept})],
        "distances": [sum(kilometres(trip) > 100 for trip in trips)],
        "times": [max(seconds), min(seconds), *listed(p.hour for p in pickups), *listed(p.day for p in pickups),
                  *listed(p.month for p in pickups)],
        "durations by day": medians(lambda pickup: pickup.day),
        "durations by month": medians(lambda pickup: pickup.month),
    }


def run(app, file):
    return subprocess.run([app, "--csv", file, "--answers", "--verify", "--threads", "2"], capture_output=True,
                          text=True, timeout=60)


def check_answers(app, file, trips, columns, end):
    lines = [",".join(columns), "", *(",".join(trip.get(column, "more") for column in columns) for trip in trips)]
    file.write_bytes((end.join(lines) + end).encode())
    done = run(app, file)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["rows"] == len(trips) and result["verified"]
    wanted = answers_to(trips)
    assert list(result["answers"]) == list(wanted)
    for question, numbers in wanted.items():
        assert len(numbers) == len(result["answers"][question]) and all(
            math.isclose(a, b, rel_tol=1e-12) for a, b in zip(numbers, result["answers"][question])), \
            f"{question}: {result['answers'][question]}, and wanted {numbers}"


def check_refused(app, file, text, *words):
    file.write_text(text)
    done = run(app, file)
    assert done.returncode == 2 and done.stdout == "", f"{text!r}: exit status {done.returncode}\n{done.stderr}"
    for word in words:
        assert word in done.stderr, f"'{word}' is not in the message: {done.stderr}"


def main():
    app = sys.argv[1]
    trips = made_up(3000)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "trips.csv")
        check_answers(app, file, trips, HEADER, "\n")
        check_answers(app, file, trips, ["more", *reversed(HEADER), "and more"], "\r\n")

        head, good = ",".join(HEADER), ",".join(trips[0].values())

        def wrong(column, value):
            return head + "\n" + good + "\n" + ",".join((trips[0] | {column: value}).values()) + "\n"

        check_refused(app, file, "", "is empty")
        check_refused(app, file, head + "\n", "no trips")
        check_refused(app, file, head.replace("pickup_longitude", "PULocationID") + "\n" + good + "\n",
                      "line 1", "no column pickup_longitude", "January to June 2016")
        check_refused(app, file, head + "\n" + good + "\n" + good + ",1\n", "line 3", "20 columns")
        check_refused(app, file, wrong("fare_amount", "much"), "line 3", "fare_amount", "'much' is not a number")
        check_refused(app, file, wrong("fare_amount", ""), "line 3", "fare_amount", "'' is not a number")
        check_refused(app, file, wrong("passenger_count", "2.5"), "passenger_count", "a whole number")
        check_refused(app, file, wrong("VendorID", "99999999999"), "VendorID", "a whole number")
        check_refused(app, file, wrong("store_and_fwd_flag", "No"), "store_and_fwd_flag", "one letter")
        for time in ("2016-02-30 00:00:00", "2016-01-01 24:00:00", "2016-01-01T00:00:00", "2016-1-1 0:0:0", "never"):
            check_refused(app, file, wrong("tpep_pickup_datetime", time), "tpep_pickup_datetime", time)
        done = run(app, pathlib.Path(folder, "none.csv"))
        assert done.returncode == 2 and "cannot open" in done.stderr and "No such file" in done.stderr, done.stderr
        done = run(app, folder)
        assert done.returncode == 2 and "cannot be read" in done.stderr, (done.returncode, done.stderr)


if __name__ == "__main__":
    main()
