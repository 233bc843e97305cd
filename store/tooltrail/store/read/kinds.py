"""What the columns of the tables hold, for programs that read them.

`tooltrail.store.schema` defines the tables, and takes a quarter of a second to import. A test
compares both.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from tooltrail.records.digests import EMPTY, Digest
from tooltrail.store.engines.values import EPOCH, digest_from, moment_of

LARGE_BYTES: Final = 32_768
"""Outputs of this size and more are indexed."""

NO_ID: Final = UUID(int=0)
"""Stands where an id cannot be read."""

_DIGEST_BYTES: Final = 32


class Kind(NamedTuple):
    """What the values of a column are.

    Attributes:
        name: for people.
        read: makes the value; raises `ValueError`, `TypeError` or `OverflowError` for another kind.
        neutral: stands for a value that cannot be read.
    """

    name: str
    read: Callable[[Any], Any]
    neutral: object


def _read_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _read_integer(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError
    return value


def _read_flag(value: object) -> bool:
    if value not in (0, 1):
        raise ValueError
    return bool(value)


def _read_bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError
    return value


def _read_digest(value: object) -> Digest:
    if not isinstance(value, bytes) or len(value) != _DIGEST_BYTES:
        raise ValueError
    return digest_from(value)


def _read_id(value: object) -> UUID:
    return value if isinstance(value, UUID) else UUID(bytes=_read_bytes(value))


def _read_time(value: object) -> datetime:
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return moment_of(_read_integer(value))


KINDS: Final[Mapping[str, Kind]] = {
    one.name: one
    for one in (
        Kind("id", _read_id, NO_ID),
        Kind("time", _read_time, EPOCH),
        Kind("digest", _read_digest, EMPTY),
        Kind("text", _read_text, ""),
        Kind("flag", _read_flag, neutral=False),
        Kind("bytes", _read_bytes, b""),
        Kind("integer", _read_integer, 0),
    )
}

_TABLES: Final = {
    "artifacts": "key:integer digest:digest size:integer stored_size:integer line_count:integer"
    " created_at:time",
    "bodies": "key:integer digest:digest size:integer encoding:text data:bytes?",
    "invocation_artifacts": "invocation_key:integer n:integer role:text digest:digest",
    "invocations": "key:integer id:id session_key:integer seq:integer state:text tool_name:text"
    " family:text call_id:text? message_id:id? position:integer policy:digest"
    " arguments_preview:text started_at:time finished_at:time? duration_ms:integer?"
    " error_kind:text? exit_status:integer? signal:integer? timed_out:flag? output_size:integer?"
    " lost_size:integer? truncated:flag?",
    "ledger_entries": "fact:text",
    "messages": "key:integer id:id seq:integer role:text text:digest document:digest?"
    " payload:digest? wire_format:text? created_at:time",
    "omissions": "invocation_key:integer n:integer stage:text field:text unit:text"
    " before_count:integer after_count:integer reason:text",
    "pending_artifacts": "spooled:text? reason:text",
    "sessions": "key:integer id:id name:text? parent_id:id? title:text? agent:text?"
    " environment:digest? opened_at:time closed_at:time? close_reason:text?",
    "streams": "invocation_key:integer role:text digest:digest size:integer line_count:integer"
    " produced_size:integer produced_line_count:integer loss_reason:text? receipt_offset:integer?",
    "surfaces": "arguments:text? output:text? canonical:text? receipt:text? renderer:text?"
    " renderer_version:integer? shown:digest? is_exact:flag",
    "tombstones": "digest:digest reason:text rule:text removed_at:time",
    "tools": "digest:digest name:text created_at:time",
}
"""The columns that are read. A `?` marks those that may be NULL."""

COLUMNS: Final[Mapping[str, tuple[Kind, bool]]] = {
    f"{table}.{column.partition(':')[0]}": (
        KINDS[column.partition(":")[2].rstrip("?")],
        column.endswith("?"),
    )
    for table, columns in _TABLES.items()
    for column in columns.split()
}
"""Kind of each column, and whether the column may be NULL."""
