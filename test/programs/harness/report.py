"""The figures that `hinterland run --report` leaves: found by their names, wherever in the document they stand."""

import json

from .errors import Failure

# Summed over processes when the report has several; everything else is the largest of them.
COUNTERS = ("pages_in", "pages_out", "pages_read_ahead", "pages_evicted", "pages_lost", "faults_first_touch",
            "faults_read", "faults_write", "device_errors", "device_bytes_in", "device_bytes_out",
            "reclaim_direct_faults")
GAUGES = ("budget_bytes", "resident_bytes", "far_bytes", "device_stored_bytes", "device_used_bytes", "managed",
          "takeover_resident_bytes")


def _number(node):
    if isinstance(node, bool):
        return int(node)
    if isinstance(node, (int, float)):
        return node
    if isinstance(node, dict) and isinstance(node.get("value"), (int, float)):
        return node["value"]  # {"value": 7, "help": ...}
    return None


def _walk(node, found):
    if isinstance(node, dict):
        for key, value in node.items():
            number = _number(value)
            if number is not None:
                found.setdefault(key, []).append(number)
            else:
                _walk(value, found)
    elif isinstance(node, list):
        for value in node:
            _walk(value, found)


def figures(document):
    """{name: number} of all we know that the document has. A `total` beside `processes` is not counted twice."""
    if isinstance(document, dict) and isinstance(document.get("processes"), list):
        document = document["processes"]
    found = {}
    _walk(document, found)
    result = {name: sum(found[name]) for name in COUNTERS if name in found}
    result.update({name: max(found[name]) for name in GAUGES if name in found})
    return result


def read(path):
    """Figures of the report at `path`; Failure when there is none or it is not what was promised."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except FileNotFoundError:
        raise Failure("--report left no file") from None
    except ValueError as error:
        raise Failure(f"--report is not JSON: {error}") from None
    if not isinstance(document, dict) or "schema_version" not in document:
        raise Failure("--report has no schema_version")
    result = figures(document)
    for name in ("pages_in", "pages_out"):
        if name not in result:
            raise Failure(f"--report does not have {name}")
    return result
