"""Redis: loads keys of several types and sizes, reads and writes at random; replies and DEBUG DIGEST compared."""

import hashlib

from harness.data import Data
from harness.exchange import exchange
from harness.program import ServerProgram, need

# (share of the keys, bytes of a value)
SIZES = ((0.70, 90), (0.20, 1_000), (0.085, 7_000), (0.015, 60_000))
KEYS = 40_000  # about 85 MiB in the server at scale 1
BATCH_BYTES = 64 * 1024


def command(*words):
    """One request in RESP."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


class Redis(ServerProgram):
    name = "redis"
    help = "redis-server: load, random reads and writes, DEBUG DIGEST"

    def prepare(self):
        self._server = need("redis-server")
        data = Data(self.seed)
        self._keys = int(KEYS * self.scale)
        self._load = self._batches(self._loading(data))
        self._mix = self._batches(self._mixing(data))

    def command(self):
        return [self._server, "--port", "0", "--unixsocket", self.path("socket"), "--save", "", "--appendonly", "no",
                "--enable-debug-command", "yes", "--dir", self.folder, "--daemonize", "no"]

    def _size(self, random):
        draw = random.random()
        for share, size in SIZES:
            draw -= share
            if draw < 0:
                return random.randint(size // 2, size * 3 // 2)
        return SIZES[0][1]

    def _loading(self, data):
        for key in range(self._keys):
            yield command("SET", f"s:{key}", data.value(self._size(data.random)))
            if key % 8 == 0:
                fields = [word for field in range(10) for word in (f"f{field}", data.value(40))]
                yield command("HSET", f"h:{key % 4000}", *fields)
                yield command("ZADD", f"z:{key % 100}", data.random.randrange(10**6), f"m{key}")
                yield command("RPUSH", f"l:{key % 100}", data.value(200))

    def _mixing(self, data):
        random = data.random
        for _ in range(self._keys):
            key = random.randrange(self._keys)
            kind = random.randrange(10)
            if kind < 5:
                yield command("GET", f"s:{key}")
            elif kind < 7:
                yield command("SET", f"s:{key}", data.value(self._size(random)))
            elif kind == 7:
                yield command("APPEND", f"s:{key}", data.value(100))
                yield command("DEL", f"s:{random.randrange(self._keys)}")
            elif kind == 8:
                yield command("HINCRBY", f"h:{key % 4000}", "count", random.randrange(100))
                yield command("HGET", f"h:{key % 4000}", f"f{key % 10}")
                yield command("ZRANGE", f"z:{key % 100}", 0, 20, "WITHSCORES")
            else:
                yield command("LINDEX", f"l:{key % 100}", key % 50)
                yield command("GETRANGE", f"s:{key}", 10, 60)

    def _batches(self, commands):
        """Requests of about BATCH_BYTES, each ended by an ECHO by which the end of the replies is known."""
        batches, current, size = [], [], 0
        for request in commands:
            current.append(request)
            size += len(request)
            if size >= BATCH_BYTES or len(current) >= 200:
                batches.append(current)
                current, size = [], 0
        batches.append(current)
        return [(b"".join(current) + command("ECHO", f"end-of-batch-{number}"), b"end-of-batch-%d\r\n" % number)
                for number, current in enumerate(batches)]

    def work(self, link):
        answer = {}
        for what, batches in (("replies to the load", self._load), ("replies to reads and writes", self._mix)):
            digest = hashlib.sha256()
            for request, ending in batches:
                reply = exchange(link, request, ending)
                digest.update(reply)
            answer[what] = digest.hexdigest()
        answer["DBSIZE"] = self._ask(link, "DBSIZE")
        answer["DEBUG DIGEST"] = self._ask(link, "DEBUG", "DIGEST")
        return answer

    def _ask(self, link, *words):
        reply = exchange(link, command(*words) + command("ECHO", "asked"), b"asked\r\n")
        return bytes(reply.split(b"\r\n")[0]).decode(errors="replace")

    def stop(self, link):
        link.sendall(command("SHUTDOWN", "NOSAVE"))
