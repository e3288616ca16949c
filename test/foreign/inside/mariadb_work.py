"""The work of the MariaDB test: mariadb_work.py FOLDER SCALE prints `check: value` lines.

A buffer pool of 400 MiB, tables that are loaded, changed and joined; then the server is killed in the middle of a
transaction, started again, and what it recovers is looked at. Nothing depends on times.
"""

import hashlib
import os
import signal
import subprocess
import sys
import time

FOLDER, SCALE = sys.argv[1], float(sys.argv[2])
DATA, SOCKET, LOG = (os.path.join(FOLDER, name) for name in ("data", "socket", "log.err"))
ROWS, CHANGES = int(200_000 * SCALE), max(2, int(20 * SCALE))
USER = [f"--user={os.environ.get('USER') or 'root'}"] if os.geteuid() == 0 else []
SETTINGS = ["--no-defaults", f"--datadir={DATA}", f"--socket={SOCKET}", "--skip-networking", "--skip-grant-tables",
            "--innodb-buffer-pool-size=400M",
            # Else 8 TiB are reserved, which no window has, and the pool stays local (siege.calls.reserve).
            "--loose-innodb-buffer-pool-size-max=400M", "--innodb-log-file-size=64M", "--innodb-flush-log-at-trx-commit=1",
            f"--log-error={LOG}", f"--pid-file={FOLDER}/pid", f"--tmpdir={FOLDER}", *USER]

TABLES = """
create database work; use work;
create table entry (id int primary key, digest char(32) not null, text varchar(600) not null, changed int not null,
  index (digest)) engine=innodb;
create table small (id int primary key, entry int not null, index (entry)) engine=innodb;
"""
QUERIES = {
    "count and sum": "select count(*), sum(id), sum(changed) from entry",
    "all rows": "select id, digest, md5(text), changed from entry order by id",
    "sorted": "select md5(group_concat(left(digest, 2) order by digest desc)) from entry where id <= 20000",
    "joined": "select count(*), sum(e.id) from entry e join small s on s.entry = e.id",
    "grouped": "select left(digest, 1) d, count(*), max(id) from entry group by d order by d",
}


def start():
    server = subprocess.Popen(["mariadbd", *SETTINGS], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while ask("select 1", check=False) is None:
        if server.poll() is not None:
            with open(LOG, encoding="utf-8", errors="replace") as file:
                raise SystemExit(f"mariadbd ended with {server.returncode}: {file.read()[-800:]}")
        time.sleep(0.1)
    return server


def client(**more):
    return subprocess.Popen(["mariadb", "--no-defaults", f"--socket={SOCKET}", "-N", "-B", "-n"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def ask(text, check=True):
    process = client()
    out, errors = process.communicate(f"set session group_concat_max_len = 100000000; {text};")
    if process.returncode == 0:
        return out
    if check:
        raise SystemExit(f"{text[:80]}: {errors[-400:]}")
    return None


def show(what, value):
    print(f"{what}: {value}", flush=True)


def show_contents(when):
    for what, text in QUERIES.items():
        show(f"{what} {when}", hashlib.sha256(ask("use work; " + text).encode()).hexdigest())
    show(f"checked {when}", ask("use work; check table entry, small extended").replace("\t", " ").replace("\n", "; "))


def load():
    ask(TABLES)
    ask(f"use work; insert into entry select seq, md5(seq), repeat(md5(seq * 7), 4 + seq % 14), 0 from seq_1_to_{ROWS}")
    ask(f"use work; insert into small select seq, 1 + seq * 7919 % {ROWS} from seq_1_to_{ROWS // 4}")


def change():
    for number in range(CHANGES):
        ask(f"use work; update entry set changed = changed + 1, text = reverse(text) where id % {CHANGES} = {number}")
        ask(f"use work; delete from entry where id % 1009 = {number}")


def kill_in_a_transaction(server):
    """What it changed must be gone, and what was committed before must be there."""
    process = client()
    process.stdin.write("use work; begin; update entry set text = 'lost', changed = -1 where id % 3 = 0;"
                        "delete from small; select 'changed';\n")
    process.stdin.flush()
    if process.stdout.readline() != "changed\n":
        raise SystemExit(f"the open transaction: {process.stderr.read()[-400:]}")
    server.send_signal(signal.SIGKILL)
    server.wait()
    process.communicate()


def main():
    made = subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={DATA}", "--skip-test-db",
                           "--auth-root-authentication-method=normal", *USER], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise SystemExit(f"mariadb-install-db: {made.stdout[-400:]}{made.stderr[-400:]}")
    server = start()
    load()
    show_contents("once loaded")
    change()
    show_contents("once changed")
    kill_in_a_transaction(server)
    server = start()
    show_contents("after the recovery")
    server.terminate()
    show("ends with", server.wait())
    with open(LOG, encoding="utf-8", errors="replace") as file:
        bad = [line for line in file if "[ERROR]" in line or "corrupt" in line.lower()]
    show("server log", bad[:2] or "no error")


main()
