r"""Makes a regular expression that is meant for one line fit to be searched for in many.

In one line there is no newline, so that an expression means the same when nothing in it can match
one: `[^"]` becomes `[^\n"]`, and `\s` becomes the white space of a line. Then a search in a whole
block, with MULTILINE, finds what a search in each line would, and takes no longer, for nothing runs
over the end of its line. Not every expression can be changed so: where a part could look beyond the
line (look-around, `\Z`) or forbid what stands there (atomic and possessive groups), it has to be
searched for line by line.
"""

import re

_TOKEN = re.compile(rb"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\\[]+|.", re.DOTALL)
"""An escape, a set, or anything else."""

_REPLACED = {rb"\s": rb"[ \t\r\f\v]", rb"\W": rb"[^\w\n]", rb"\D": rb"[^\d\n]"}

_BEYOND = re.compile(rb"[*+?}]\+|\(\?(?![:P]|[aim]+[:)])|[\x00-\x08\x0a-\x1f]|\t-")
"""Possessive; all groups but the plain and the named ones; control characters."""

_BEYOND_ESCAPE = re.compile(rb"\\[AZzn0-7xuUNvfra\n]")
"""The ends of a text; numbers of characters, and letters that begin a range over the newline."""

_BEYOND_SET = re.compile(rb"\\[sWDn0-7xtvfrab\n]|[\x00-\x1f]")
"""What can put a newline into a set."""


def for_blocks(source: bytes) -> bytes | None:
    """The expression for a search in blocks of lines; None when there is none."""
    tokens: list[bytes] = []
    for token in _TOKEN.findall(source):
        changed = _changed(token)
        if changed is None:
            return None
        tokens.append(changed)
    return b"".join(tokens)


def _changed(token: bytes) -> bytes | None:
    if token in _REPLACED:
        return _REPLACED[token]
    if token.startswith(b"[^"):
        # What follows would close the set, or make a range of the newline.
        escaped = b"\\" if token[2:3] in b"]-" else b""
        return b"[^\\n" + escaped + token[2:]
    pattern = _BEYOND
    if token.startswith(b"["):
        pattern = _BEYOND_SET
    elif token.startswith(b"\\"):
        pattern = _BEYOND_ESCAPE
    return None if pattern.search(token) else token
