"""jq over one large document: group, sort, index, join; what it prints compared."""

from harness.data import Data
from harness.program import Batch, need

ENTRIES = 90_000

FILTER = """
[.entries[] | select(.weight % 3 != 0)] as $kept
| (reduce $kept[] as $one ({}; setpath([$one.id | tostring]; $one))) as $by_id
| {count: ($kept | length),
   families: ($kept | group_by(.family) | map({family: .[0].family, n: length, weight: (map(.weight) | add)})),
   heaviest: ($kept | sort_by(-.weight, .id) | .[:100]),
   friends: ([$kept[] | .id as $id | .friends[] | tostring | select($by_id[.]) | $by_id[.].weight - $id] | add),
   names: ([$kept[] | .name + (.family | tostring)] | sort | map(ascii_upcase) | unique | length),
  words: ([$kept[].tags[]] | group_by(.) | map([.[0], length]) | sort_by(-.[1], .[0]))}
"""


class Jq(Batch):
    name = "jq"
    help = "jq: group, sort and join in one large document"

    def prepare(self):
        self._jq = need("jq")
        random = Data(self.seed).random
        entries = int(ENTRIES * self.scale)
        with open(self.path("input.json"), "w", encoding="utf-8") as file:
            file.write('{"entries": [\n')
            for number in range(entries):
                friends = [random.randrange(entries) for _ in range(5)]
                tags = [f"tag{int(random.paretovariate(1)) % 1000}" for _ in range(4)]
                file.write(f'{{"id": {number}, "family": {random.randrange(1009)}, "weight": {random.randrange(10**6)}, '
                           f'"name": "{random.getrandbits(64):016x}", "friends": {friends}, '
                           f'"tags": {str(tags).replace(chr(39), chr(34))}}}{"," * (number + 1 < entries)}\n')
            file.write("]}\n")

    def command(self):
        return [self._jq, "-c", FILTER, self.path("input.json")]
