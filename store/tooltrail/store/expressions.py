"""Conditions on invocations as a tree: comparisons, joined by AND, OR and NOT.

A comparison is true or false. A comparison with a value that is missing is false, `!=` included; so
NOT of such a comparison is true. A tree is a plain value; `read.expression_sql` turns it into SQL.

    Comparison("tool", "=", "Bash")
    Comparison("arguments", "~", "make", path=("command",))
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, TypeAlias, get_args
from uuid import UUID

from tooltrail.records.digests import Digest
from tooltrail.records.errors import InvalidRecordError, check_type
from tooltrail.records.frozen import Frozen

Value: TypeAlias = str | int | float | bool | datetime | UUID | None

COLUMNS: Final = {
    **dict.fromkeys(("tool", "family", "agent", "call_id", "error_kind", "title"), "text"),
    "state": "state",
    "outcome": "outcome",
    "receipt": "text",
    "session": "session",
    "seq": "integer",
    **dict.fromkeys(("timed_out", "truncated"), "flag"),
    "exit_status": "integer",
    "signal": "signal",
    "duration": "duration",
    **dict.fromkeys(("started", "finished"), "time"),
    **dict.fromkeys(("size", "lost", "cut"), "size"),
}
"""The columns that a comparison can name, and the kind of each. Durations are milliseconds, sizes
bytes: `lost` was not captured, `cut` not shown to the model. `session` is an id or a name."""

ENVIRONMENT: Final = ("cwd", "host", "user")
"""Texts of the environment of a call that a comparison can name; see `read.environments`."""

DOCUMENTS: Final = ("arguments", "result", "error")
"""The JSON documents that a comparison can name: `result` and `error` are members of the canonical
result. Arguments that are no JSON count as one text."""

KINDS: Final = COLUMNS | dict.fromkeys(ENVIRONMENT, "text") | dict.fromkeys(DOCUMENTS, "document")
"""Every name that a comparison can have, and its kind."""

ORDERS: Final = ("<", "<=", ">", ">=")
PRESENT: Final = "is"
"""The operator of a comparison without a value: whether there is a value at all."""

_OPERATORS: Final = {
    "text": ("=", "!=", "~", PRESENT),
    "document": ("=", "!=", *ORDERS, "~", PRESENT),
    **dict.fromkeys(("session", "state", "outcome", "flag"), ("=", "!=")),
}
"""The operators of a kind, where they are not those of a number."""

_MOST_PARTS: Final = 500
_MOST_LEVELS: Final = 50
"""Most parts and levels of a tree. SQLite accepts expressions of 1,000 levels."""


class Comparison(Frozen):
    """One comparison of a column, or of a place in a document, with a value.

    Raises `InvalidRecordError` for an unknown name, and for an operator that the name does not
    have; see `operators_of`.

    Attributes:
        name: one of `KINDS`.
        operator: `~` means that a text contains the value: any text at or below a place.
        value: a value of the kind of the column. In a document, a text differs from a number.
        path: keys of objects and indexes of lists, in a document only. A key has no quotes, no
            backslashes and no control characters.
    """

    name: str
    operator: str
    value: Value = None
    path: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        if self.operator not in operators_of(self.name):
            raise InvalidRecordError(f"{self.name} {self.operator} is no comparison")
        for key in self.path:
            if isinstance(key, str) and (not key.isprintable() or set(key) & {'"', "\\"}):
                raise InvalidRecordError(f"{key!r:.80} cannot be in a path of {self.name}")


class RanIn(Frozen):
    """True for calls that ran in one of the environments for which a comparison is true."""

    comparison: Comparison
    environments: tuple[Digest, ...]


class Every(Frozen):
    """True if all parts are true."""

    parts: tuple["Expression", ...]


class Some(Frozen):
    """True if a part is true."""

    parts: tuple["Expression", ...]


class Not(Frozen):
    """True if the part is false."""

    part: "Expression"


Expression: TypeAlias = Comparison | RanIn | Every | Some | Not


def operators_of(name: str) -> tuple[str, ...]:
    """The operators that a name accepts; none for an unknown name."""
    kind = KINDS.get(name)
    return () if kind is None else _OPERATORS.get(kind, ("=", "!=", *ORDERS, PRESENT))


def comparisons_of(expression: Expression) -> Iterator[Comparison]:
    """Every comparison in a tree but those of environments."""
    if isinstance(expression, Comparison):
        yield expression
    for part in _parts_of(expression):
        yield from comparisons_of(part)


def check_size(expression: Expression) -> None:
    """Raise `InvalidRecordError` for a tree that a database could refuse, since it is too large."""
    check_type("filter expression", expression, *get_args(Expression))
    level: tuple[Expression, ...] = (expression,)
    depth = count = 0
    while level:
        depth, count = depth + 1, count + len(level)
        if depth > _MOST_LEVELS or count > _MOST_PARTS:
            raise InvalidRecordError(
                f"a condition has more than {_MOST_PARTS} parts, or more than {_MOST_LEVELS} levels"
            )
        level = tuple(part for one in level for part in _parts_of(one))


def required_values(expression: Expression) -> dict[str, tuple[Value, ...]]:
    """The columns that must equal one of some values, with these values.

    Example: of `tool = "A" and state in ("error", "denied") and size > 3`, tool and state.
    """
    parts = expression.parts if isinstance(expression, Every) else (expression,)
    found: dict[str, tuple[Value, ...]] = {}
    for part in parts:
        choices = part.parts if isinstance(part, Some) else (part,)
        equal = [one for one in choices if isinstance(one, Comparison) and one.operator == "="]
        names = {one.name for one in equal}
        if len(equal) == len(choices) and len(names) == 1 and names <= COLUMNS.keys():
            found.setdefault(names.pop(), tuple(one.value for one in equal))
    return found


def _parts_of(expression: Expression) -> tuple[Expression, ...]:
    if isinstance(expression, Not):
        return (expression.part,)
    return expression.parts if isinstance(expression, Every | Some) else ()
