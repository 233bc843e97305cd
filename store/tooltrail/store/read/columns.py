"""The kinds of the columns of the tables, and a reader for values that may have another kind.

SQLite stores a text in a column of integers if a program writes one. `Columns.read` replaces such a
value by a neutral one, and reports the damage. A damaged row never hides another row.

A test compares `COLUMNS` with the tables, which `docs/tables.md` describes.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeVar, get_args
from uuid import UUID

from tooltrail.records.digests import EMPTY
from tooltrail.records.errors import DamageError
from tooltrail.records.frozen import Frozen
from tooltrail.records.states import InvocationState
from tooltrail.store.engines.values import EPOCH, digest_from

View = TypeVar("View", bound=Frozen)

LARGE_BYTES: Final = 32_768
"""Smallest size of an output that is indexed, in bytes."""

NO_ID: Final = UUID(int=0)
"""Replaces an id that cannot be read."""

_DIGEST_BYTES: Final = 32
_STATES: Final = get_args(InvocationState)

_KINDS: Final[Mapping[str, tuple[type | None, object]]] = {
    "id": (UUID, NO_ID),
    "time": (None, EPOCH),
    "digest": (None, EMPTY),
    "text": (str, ""),
    "flag": (bool, False),
    "bytes": (bytes, b""),
    "integer": (int, 0),
    "state": (None, "error"),
}
"""For each kind: the type whose values need no conversion, and the value that replaces damage."""

_TABLES: Final = {
    "artifacts": "key:integer digest:digest size:integer stored_size:integer line_count:integer"
    " created_at:time",
    "bodies": "key:integer digest:digest size:integer encoding:text data:bytes?",
    "invocation_artifacts": "invocation_key:integer role:text digest:digest",
    "invocations": "key:integer id:id seq:integer state:text tool_name:text family:text"
    " call_id:text? message_id:id? position:integer policy:digest title:text?"
    " started_at:time finished_at:time? duration_ms:integer? error_kind:text?"
    " exit_status:integer? signal:integer? timed_out:flag? output_size:integer?"
    " lost_size:integer? truncated:flag? is_late:flag",
    "journals": "key:integer id:id host:text spool:text branch_of:id? entry_count:integer"
    " next_index:integer head:bytes? segment:integer segment_offset:integer frame_offset:integer?"
    " created_at:time ingested_at:time",
    "messages": "key:integer id:id seq:integer role:text text:digest document:digest?"
    " payload:digest? wire_format:text? created_at:time",
    "omissions": "invocation_key:integer stage:text field:text unit:text before_count:integer"
    " after_count:integer reason:text",
    "pending_artifacts": "digest:digest spooled:text? role:text size:integer reason:text"
    " noticed_at:time",
    "rejected_facts": "n:integer? subject_id:id? reason:text rejected_at:time",
    "sessions": "key:integer id:id name:text? parent_id:id? title:text? agent:text?"
    " environment:digest? opened_at:time closed_at:time? close_reason:text?",
    "store_info": "key:integer id:id format:integer artifact_root:text created_at:time",
    "streams": "invocation_key:integer role:text digest:digest size:integer line_count:integer"
    " produced_size:integer produced_line_count:integer loss_reason:text? receipt_offset:integer?",
    "surfaces": "arguments:text? output:text? canonical:text? receipt:text? renderer:text?"
    " renderer_version:integer? shown:digest? cut_size:integer? is_exact:flag",
    "tombstones": "digest:digest reason:text rule:text removed_at:time",
    "tools": "digest:digest name:text created_at:time",
}
"""The columns that are read, with their kinds. `?` marks columns that may be NULL."""

COLUMNS: Final = {
    f"{table}.{name}": (kind.rstrip("?"), kind.endswith("?"))
    for table, columns in _TABLES.items()
    for name, _, kind in (one.partition(":") for one in columns.split())
}
"""The kind of each column, and whether the column may be NULL."""


class Computed(NamedTuple):
    """A column of a query that is not a column of a table: its SQL, name and kind."""

    sql: str
    name: str
    kind: str


class Columns:
    """The columns of a query, and how to read their driver values. Immutable.

    Args:
        columns: texts `table: name name …`, or computed columns. Such a column may be NULL if the
            table allows it; a computed column may not.
        optional: further columns that may be NULL, such as those of an outer join.
    """

    def __init__(self, *columns: str | Computed, optional: Sequence[str | Computed] = ()) -> None:
        self._columns: list[tuple[str, str, bool]] = []
        sources: list[str] = []
        for number, column in enumerate((*columns, *optional)):
            is_optional = number >= len(columns)
            if isinstance(column, Computed):
                self._columns.append((column.name, column.kind, is_optional))
                sources.append(column.sql)
                continue
            table, _, names = column.partition(": ")
            for name in names.split():
                kind, may_be_null = COLUMNS[f"{table}.{name}"]
                self._columns.append((name, kind, is_optional or may_be_null))
                sources.append(f"{table}.{name}")
        self._types = [_KINDS[kind][0] for _, kind, _ in self._columns]
        self.sql = ", ".join(sources)
        """The column list of the query."""

    def read(self, row: Sequence[Any]) -> tuple[dict[str, Any], list[str]]:
        """The values of a row by name, and its problems, such as `duration_ms holds no integer`.

        The row may have further values behind these columns.
        """
        values: dict[str, Any] = {}
        problems: list[str] = []
        columns = zip(self._columns, self._types, row, strict=False)
        for (name, kind, is_optional), own, value in columns:
            values[name] = value
            if type(value) is own or (value is None and is_optional):
                continue
            try:
                values[name] = _converted(kind, value)
            except (ValueError, TypeError, OverflowError):
                problems.append(f"{name} holds no {kind}")
                values[name] = None if is_optional else _KINDS[kind][1]
        return values, problems


def _converted(kind: str, value: object) -> object:
    """Convert a driver value to the type of its kind; `TypeError` for a value of another kind."""
    if kind == "time" and isinstance(value, int):
        return EPOCH + timedelta(microseconds=value)
    if kind == "time" and isinstance(value, datetime):
        return value.astimezone(UTC)
    if kind == "id" and isinstance(value, bytes):
        return UUID(bytes=value)
    if kind == "digest" and isinstance(value, bytes) and len(value) == _DIGEST_BYTES:
        return digest_from(value)
    if kind == "flag" and value in (0, 1):
        return bool(value)
    if kind == "state" and value in _STATES:
        return value
    raise TypeError(value)


def make_view(view: type[View], values: Mapping[str, Any], **more: Any) -> View:
    """Make a view from values with the names of its fields. A missing value is None."""
    return view(*map({**values, **more}.get, view.member_types))


def first_line(error: object) -> str:
    """The first line of an error: the others list each wrong member of a document."""
    return str(error).partition("\n")[0]


def refuse_damage(table: str, key: object, problems: Sequence[str]) -> None:
    """Raise `DamageError` if a row has problems."""
    if damage := damage_of(table, key, problems):
        raise DamageError(damage, path=table)


def damage_of(table: str, key: object, problems: Sequence[str]) -> str | None:
    """The damage of a row in one sentence; None if there is none."""
    if not problems:
        return None
    return f"row {key} of {table} is damaged: {', '.join(dict.fromkeys(problems))}"
