"""The parts of a schema of SQLite, from the statements that it keeps and goes by itself.

No pragma tells all of a column or of a reference: not what it collates by, nor whether it is
deferred. So a table is the words of its CREATE TABLE, taken apart at the commas, which an ALTER
TABLE of a migration edits in place.
"""

import re
from collections.abc import Generator, Iterable

from sqlalchemy import Connection, text

_ASKED = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"

_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|\Z)"""
    r"|\w+|\s+|.",
    re.DOTALL,
)
"""What is in quotes or a comment is one, whatever stands in it."""

_QUOTED = re.compile(r'"[a-z_][a-z0-9_]*"')
"""A name that means the same without quotes, which a rename adds. No key word of ours is small, so
that it is never taken for one."""

_CONSTRAINTS = frozenset({"PRIMARY", "UNIQUE", "CHECK", "FOREIGN"})
"""What a constraint without a name begins with."""

Part = tuple[str, str, str, str]
"""Table, kind, name, definition."""


def iter_sqlite_parts(connection: Connection) -> Generator[Part]:
    """Every part of every table."""
    for kind, name, table, statement in connection.execute(text(_ASKED)):
        if kind == "table":
            yield from _parts_of(name, statement)
        else:
            yield table, kind, name, _spaced(_tokens(statement))


def _parts_of(table: str, statement: str) -> Generator[Part]:
    head, items, tail = _taken_apart(statement)
    yield table, "table", "", f"{_spaced(head)} {_spaced(tail)}".strip()
    for item in items:
        words = [token for token in item if not token.isspace()]
        first = words[0].upper() if words else ""
        if first == "CONSTRAINT" and len(words) > 1:
            yield table, "constraint", words[1], _after(item, 2)
        elif first in _CONSTRAINTS:
            yield table, "constraint", _spaced(item), ""
        elif words:
            yield table, "column", words[0], _after(item, 1)


def _taken_apart(statement: str) -> tuple[list[str], list[list[str]], list[str]]:
    """The tokens before the outermost brackets, between the commas in them, and after them."""
    head: list[str] = []
    items: list[list[str]] = [[]]
    tail: list[str] = []
    depth, into = 0, head
    for piece in _tokens(statement):
        if piece == "(":
            depth += 1
            if depth == 1 and into is head:
                into = items[-1]
                continue
        elif piece == ")":
            depth -= 1
            if not depth and into is items[-1]:
                into = tail
                continue
        elif piece == "," and depth == 1 and into is items[-1]:
            items.append(into := [])
            continue
        into.append(piece)
    return head, items, tail


def _after(item: list[str], count: int) -> str:
    """What follows so many words."""
    places = [n for n, token in enumerate(item) if not token.isspace()]
    return _spaced(item[places[count - 1] + 1 :])


def _tokens(statement: str) -> list[str]:
    return [
        token[1:-1] if _QUOTED.fullmatch(token) else token for token in _TOKEN.findall(statement)
    ]


def _spaced(tokens: Iterable[str]) -> str:
    return "".join(" " if token.isspace() else token for token in tokens).strip()
