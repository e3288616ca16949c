"""Redis under write load: the file of a BGSAVE and that of an AOF rewrite, reloaded, must hold the data set they were
taken of, and so must the server that loads them under far memory."""

import os
import shutil
import socket
import time

from harness import endings
from harness.data import Data
from harness.errors import Failure
from harness.exchange import exchange
from harness.process import Process
from harness.program import ServerProgram, need
from workloads.redis import command

from passes import Passes

KEYS = 60_000  # about 100 MiB in the server at scale 1
BATCH = 200
ROUNDS = 3


class RedisFiles(Passes, ServerProgram):
    name = "redis-files"
    help = "redis-server: BGSAVE and BGREWRITEAOF under write load, the files reloaded, DEBUG DIGEST"

    def prepare(self):
        self._server = need("redis-server")
        data = Data(self.seed)
        keys = int(KEYS * self.scale)
        self._load = _batches(self._writes(data, range(keys)))
        self._more = [_batches(self._writes(data, (data.random.randrange(keys) for _ in range(keys // 2))))
                      for _ in range(2 * ROUNDS)]

    def command(self):
        shutil.rmtree(self.path("data"), ignore_errors=True)
        os.makedirs(self.path("data"))
        return self._argv("data", "socket")

    def _argv(self, folder, name):
        return [self._server, "--port", "0", "--unixsocket", self.path(name), "--save", "", "--appendonly", "yes",
                "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0", "--enable-debug-command", "yes", "--dir",
                self.path(folder), "--daemonize", "no"]

    def _writes(self, data, keys):
        random = data.random
        for key in keys:
            yield command("SET", f"s:{key}", data.value(random.choice((100, 300, 1_500, 6_000))))
            if key % 8 == 0:
                yield command("HSET", f"h:{key % 3000}", f"f{random.randrange(50)}", data.value(40))
                yield command("ZADD", f"z:{key % 100}", random.randrange(10**6), f"m{key}")
                yield command("RPUSH", f"l:{key % 100}", data.value(200))
                yield command("DEL", f"s:{random.randrange(KEYS)}")

    def work(self, link):
        self._send(link, self._load)
        answer = {"digest of the load": self._digest(link)}
        for number in range(ROUNDS):
            answer |= self._save(link, number)
            answer |= self._rewrite(link, number)
        self._ask(link, "DEBUG", "RELOAD")
        answer["digest after DEBUG RELOAD"] = self._digest(link)
        self._ask(link, "DEBUG", "LOADAOF")
        answer["digest after DEBUG LOADAOF"] = self._digest(link)
        return answer

    def _save(self, link, number):
        at_fork = self._digest(link)
        self._expect(link, "Background saving started", "BGSAVE")
        under_way = self._write_while(link, "rdb_bgsave_in_progress", self._more[2 * number])
        if "rdb_last_bgsave_status:ok" not in self._ask(link, "INFO", "persistence"):
            raise Failure("the BGSAVE failed")
        folder = self._copy("dump.rdb")
        restored = self._reloaded(folder, "--appendonly", "no", "--dbfilename", "dump.rdb")
        return self._same(f"file of BGSAVE {number}", at_fork, restored, under_way)

    def _rewrite(self, link, number):
        self._expect(link, "Background append only file rewriting started", "BGREWRITEAOF")
        under_way = self._write_while(link, "aof_rewrite_in_progress", self._more[2 * number + 1])
        if "aof_last_bgrewrite_status:ok" not in self._ask(link, "INFO", "persistence"):
            raise Failure("the AOF rewrite failed")
        digest = self._digest(link)
        restored = self._reloaded(self._copy("appendonlydir"))
        return self._same(f"file of AOF rewrite {number}", digest, restored, under_way)

    def _same(self, what, wanted, found, batches_under_way):
        if wanted != found:
            return {}
        return {what: wanted, what + " was written under load": batches_under_way > 0}

    def _write_while(self, link, progress, batches):
        """All batches; how many of them came while the child still worked. Returns when it has ended."""
        under_way = 0
        for batch in batches:
            exchange(link, *batch)
            under_way += self._in_progress(link, progress)
        end = time.monotonic() + link.gettimeout()
        while self._in_progress(link, progress):
            if time.monotonic() > end:
                raise Failure(f"{progress} does not end")
            with endings.waiting:
                time.sleep(0.05)
        return under_way

    def _in_progress(self, link, progress):
        return progress + ":1" in self._ask(link, "INFO", "persistence")

    def _copy(self, name):
        """A folder with a copy of what the server has written so far (it writes before it replies)."""
        folder = self.path("copy")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        source = os.path.join(self.path("data"), name)
        if os.path.isdir(source):
            shutil.copytree(source, os.path.join(folder, name))
        else:
            shutil.copy(source, folder)
        return folder

    def _reloaded(self, folder, *options):
        """DEBUG DIGEST of a native server that loads the folder."""
        with Process([*self._argv(folder, "check"), *options], sample=False) as process:
            with self._connect_check(process) as link:
                link.settimeout(120)
                while self._ask(link, "PING") != "+PONG":  # still loading
                    with endings.waiting:
                        time.sleep(0.05)
                digest = self._digest(link)
                link.sendall(command("SHUTDOWN", "NOSAVE"))
            process.wait(30)
        return digest

    def _connect_check(self, process):
        end = time.monotonic() + 30
        while time.monotonic() < end and process.running():
            link = socket.socket(socket.AF_UNIX)
            try:
                link.connect(self.path("check"))
                return link
            except OSError:
                link.close()
                with endings.waiting:
                    time.sleep(0.02)
        raise Failure("a server that should load the file does not start")

    def _send(self, link, batches):
        for batch in batches:
            exchange(link, *batch)

    def _digest(self, link):
        return self._ask(link, "DEBUG", "DIGEST")

    def _expect(self, link, words, *request):
        reply = self._ask(link, *request)
        if words not in reply:
            raise Failure(f"{request[0]}: {reply[:100]}")

    def _ask(self, link, *words):
        reply = exchange(link, command(*words) + command("ECHO", "asked"), b"asked\r\n")
        return bytes(reply[:reply.rindex(b"$5\r\n")]).decode(errors="replace").strip()

    def stop(self, link):
        link.sendall(command("SHUTDOWN", "NOSAVE"))


def _batches(commands):
    """(request, how its replies end) of some commands each."""
    requests = list(commands)
    return [(b"".join(requests[at:at + BATCH]) + command("ECHO", f"end-of-batch-{at}"), b"end-of-batch-%d\r\n" % at)
            for at in range(0, len(requests), BATCH)]
