"""The work of the PostgreSQL test: postgres_work.py FOLDER_OF_ITS_PROGRAMS FOLDER SCALE prints `check: value` lines.

Transactions are counted, not timed, and their random numbers seeded, so that what is left in the tables does not
depend on their order.
"""

import hashlib
import os
import subprocess
import sys

PROGRAMS, FOLDER, SCALE = sys.argv[1], sys.argv[2], float(sys.argv[3])
DATA = os.path.join(FOLDER, "data")
CLIENTS, TRANSACTIONS, BRANCHES = 4, int(1500 * SCALE), max(1, int(5 * SCALE))
SETTINGS = f"""
listen_addresses = ''
unix_socket_directories = '{FOLDER}'
shared_buffers = 16MB
work_mem = 96MB
maintenance_work_mem = 96MB
jit = off
max_parallel_workers_per_gather = 2
min_parallel_table_scan_size = 1MB
"""

QUERIES = {
    "sort": "select aid, md5(aid::text), abalance from pgbench_accounts order by md5(aid::text)",
    "group": "select md5((aid % 90000)::text) k, count(*), sum(aid) from pgbench_accounts group by k order by k",
    "join": "select count(*), sum(a.aid + b.aid) from pgbench_accounts a join pgbench_accounts b"
            " on md5(a.aid::text) = md5((b.aid + 1)::text)",
    "window": "select sum(r * aid) from (select aid, rank() over (partition by aid % 100 order by md5(aid::text)) r"
              " from pgbench_accounts) t",
    "strings": "select md5(string_agg(md5(aid::text), '' order by aid desc)) from pgbench_accounts",
}
SUMS = {
    "accounts": "select sum(abalance) from pgbench_accounts",
    "tellers": "select sum(tbalance) from pgbench_tellers",
    "branches": "select sum(bbalance) from pgbench_branches",
    "history": "select sum(delta) from pgbench_history",
}


def call(program, *words, text=None):
    done = subprocess.run([os.path.join(PROGRAMS, program), *map(str, words)], input=text, capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{program}: exit status {done.returncode}: {done.stdout[-300:]}{done.stderr[-600:]}")
    return done.stdout


def query(text):
    return call("psql", "-h", FOLDER, "-XAtq", "-d", "postgres", "-c", text)


def show(what, value):
    print(f"{what}: {value}", flush=True)


def work():
    bench = ("-h", FOLDER, "-n", "-c", CLIENTS, "-j", 2, "--random-seed=20240229", "postgres")
    call("pgbench", "-h", FOLDER, "-i", "-q", "-s", BRANCHES, "--foreign-keys", "postgres")
    for what, text in QUERIES.items():
        show(what, hashlib.sha256(query(text).encode()).hexdigest())
    query("create index by_digest on pgbench_accounts (md5(aid::text)); create index by_filler on pgbench_accounts"
          " (filler, aid)")
    call("pgbench", "-t", TRANSACTIONS, *bench)
    call("pgbench", "-t", TRANSACTIONS, "-M", "prepared", *bench)
    sums = {what: query(text).strip() for what, text in SUMS.items()}
    show("the four sums are equal", len(set(sums.values())) == 1)
    show("sum of the balances", sums["accounts"])
    show("transactions", query("select count(*) from pgbench_history").strip())
    show("all balances", hashlib.sha256(query("select aid, abalance from pgbench_accounts order by aid").encode())
         .hexdigest())
    query("vacuum (full, analyze) pgbench_accounts")
    query("create extension amcheck")
    checked = call("pg_amcheck", "-h", FOLDER, "--heapallindexed", "-d", "postgres").strip()
    show("pg_amcheck", checked or "nothing wrong")
    dump = call("pg_dump", "-h", FOLDER, "-t", "pgbench_accounts", "-a", "postgres")
    show("rows in a dump", dump.count("\n"))


def main():
    call("initdb", "-D", DATA, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
    with open(os.path.join(DATA, "postgresql.conf"), "a", encoding="utf-8") as file:
        file.write(SETTINGS)
    log = os.path.join(FOLDER, "log")
    subprocess.run([os.path.join(PROGRAMS, "pg_ctl"), "-D", DATA, "-l", log, "-w", "-t", "120", "start"], check=True,
                   stdout=subprocess.DEVNULL)
    try:
        work()
    finally:
        call("pg_ctl", "-D", DATA, "-w", "-m", "fast", "stop")
    with open(log, encoding="utf-8", errors="replace") as file:
        bad = [line for line in file if "PANIC" in line or "terminated by signal" in line or "ERROR" in line]
    show("server log", bad[:2] or "no error")


main()
