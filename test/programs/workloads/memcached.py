"""memcached: sets, gets, increments and deletes at random, then every key is read; all replies are compared."""

import hashlib

from harness.data import Data
from harness.exchange import exchange
from harness.program import ServerProgram, need

KEYS = 30_000  # about 75 MiB in the server at scale 1
BATCH = 100


class Memcached(ServerProgram):
    name = "memcached"
    help = "memcached: set, get, incr, delete, and every value at the end"

    def prepare(self):
        self._server = need("memcached")
        data = Data(self.seed)
        self._keys = int(KEYS * self.scale)
        self._phases = {
            "replies to the load": self._batches(self._loading(data)),
            "replies to reads and writes": self._batches(self._mixing(data)),
            "all values": self._batches(f"get k{key}\r\n".encode() for key in range(self._keys)),
        }

    def command(self):
        # -M: an error instead of evicting, so that what is found does not depend on time. -A: `shutdown` is allowed.
        megabytes = int(64 + 160 * self.scale)
        return [self._server, "-s", self.path("socket"), "-m", megabytes, "-M", "-A", "-t", 2, "-u", "root"]

    def _set(self, data, key):
        size = data.random.choice((60, 300, 300, 1_500, 1_500, 6_000, 10_000, 20)) + data.random.randrange(50)
        value = data.value(size)
        return b"set k%d %d 0 %d\r\n%s\r\n" % (key, key % 1000, len(value), value)

    def _loading(self, data):
        for key in range(self._keys):
            yield self._set(data, key)
            if key % 10 == 0:
                yield b"set n%d 0 0 1\r\n0\r\n" % key

    def _mixing(self, data):
        random = data.random
        for _ in range(self._keys * 2):
            key, kind = random.randrange(self._keys), random.randrange(10)
            if kind < 6:
                yield b"get k%d\r\n" % key
            elif kind < 8:
                yield self._set(data, key)
            elif kind == 8:
                yield b"incr n%d %d\r\n" % (key // 10 * 10, random.randrange(1000))
            else:
                yield b"delete k%d\r\n" % key

    def _batches(self, requests):
        batches, current = [], []
        for request in requests:
            current.append(request)
            if len(current) == BATCH:
                batches.append(b"".join(current))
                current = []
        batches.append(b"".join(current))
        return batches

    def work(self, link):
        answer = {}
        for what, batches in self._phases.items():
            digest = hashlib.sha256()
            for batch in batches:
                # `mn` is answered by MN: the end of the batch's replies.
                digest.update(exchange(link, batch + b"mn\r\n", b"MN\r\n"))
            answer[what] = digest.hexdigest()
        statistics = exchange(link, b"stats\r\n", b"END\r\n").decode()
        for line in statistics.splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in ("curr_items", "get_hits", "get_misses", "evictions", "bytes"):
                answer[words[1]] = words[2]
        return answer

    def stop(self, link):
        link.sendall(b"shutdown\r\n")
