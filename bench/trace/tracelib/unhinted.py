"""Takes the hints out of a source: what is left is the program that a reader of a profile begins with.

A hint's call becomes `(void)(ADDRESS)`, as HL_NO_HINTS leaves it: what it names stays used, and nothing is touched.
"""

import re

FORMS = "read|write|seq_read|seq_write|hint|prefetch|cold"
_CALL = re.compile(rf"\bhl(?:::|_)(?:{FORMS})\s*\(")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]hinterland/hint\.hp?p?[>"][ \t]*\n', re.MULTILINE)
_NOT_CODE = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_OPEN, _CLOSE = "([{", ")]}"


class NotUnderstood(Exception):
    """A call whose end was not found."""


def _call_end(code, begin):
    """(end of the first argument, behind the closing bracket) of a call whose bracket is before `begin`."""
    depth, first = 1, None
    for at in range(begin, len(code)):
        letter = code[at]
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if first is None and ((letter == "," and depth == 1) or depth == 0):
            first = at
        if depth == 0:
            return first, at + 1
    raise NotUnderstood(f"the call '{code[begin - 20:begin]}' does not end")


def without_hints(text):
    """The text without hints and without the include of their header."""
    code = _NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    pieces, taken = [], 0
    for call in _CALL.finditer(code):
        if call.start() < taken:
            continue
        first, end = _call_end(code, call.end())
        # The rest of its lines stays, so that the lines below keep their numbers.
        pieces += [text[taken:call.start()], f"(void)({text[call.end():first]})", "\n" * text.count("\n", first, end)]
        taken = end
    return _INCLUDE.sub("\n", "".join(pieces) + text[taken:])
