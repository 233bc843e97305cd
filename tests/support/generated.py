"""hypothesis strategies for parts of results: hostile texts, any streams, long lists."""

import json
from collections.abc import Callable
from datetime import UTC
from typing import Any, cast

from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue
from tests.records.support import edged, lossy, whole

from tooltrail.records import BatchItem, StreamRecord, canonical_json

MANY = 300
"""More entries than any policy shows."""

ODD = ["x", "\n", "\0", "\u6f22", "\ud800", "e\u0301", "\x1b[31m", '{"a":1}', "\u202e", " "]

PIECES = [b"line\n", b'{"a":[1,2]}', b"[1,", b"\xff", b"\0", "\u6f22".encode(), b"x" * 90]


def _times(piece: str, count: int) -> str:
    return piece * count


def _stream(role: str, data: bytes, lost: tuple[int, str] | None, *, carried: bool) -> StreamRecord:
    if lost is not None:
        return lossy(data, lost[0], role, lost[1])
    return whole(data, role) if carried else edged(data, len(data), 0, role)


def _runs(runs: list[tuple[bytes, int]]) -> bytes:
    return b"".join(piece * count for piece, count in runs)


texts = st.text(st.characters(), max_size=20) | st.builds(
    _times, st.sampled_from(ODD), st.integers(1, 3000)
)
names = texts.filter(bool)
words = st.from_regex(r"[a-z][a-z0-9_]{0,63}", fullmatch=True)
moments = st.datetimes(timezones=st.just(UTC))
numbers = st.sampled_from([0, 1, 999, (1 << 63) - 1])
states = st.sampled_from(["queued", "running", "cancelling", "completed", "failed"])

payloads = st.one_of(
    st.binary(max_size=200),
    st.lists(st.tuples(st.sampled_from(PIECES), st.integers(1, 400)), max_size=4).map(_runs),
    st.integers(1, 3000).map(lambda n: json.dumps([*range(n)]).encode()),
)
losses = st.none() | st.tuples(
    st.integers(1, 10**12), st.sampled_from(["", "full", "\udce9" * 300])
)


def streams(role: str) -> st.SearchStrategy[StreamRecord]:
    """A stream with all of its content, with only its head, or with lost bytes."""
    return st.builds(_stream, st.just(role), payloads, losses, carried=st.booleans())


def optional_streams(role: str) -> st.SearchStrategy[StreamRecord | None]:
    return st.none() | streams(role)


def json_streams(role: str) -> st.SearchStrategy[StreamRecord]:
    """A stream with the canonical JSON of a value."""
    scalars: st.SearchStrategy[JsonValue] = st.none() | st.floats() | st.text(max_size=9)
    values: st.SearchStrategy[Any] = st.recursive(scalars, st.lists, max_leaves=9) | (
        st.integers(0, 3000).map(lambda n: [*range(n)])
    )
    return values.map(lambda value: whole(canonical_json.encode(value), role))


def repeated(entry: st.SearchStrategy[Any], most: int = MANY) -> st.SearchStrategy[tuple[Any, ...]]:
    """Up to `most` entries, many of them equal."""
    lengths = st.sampled_from([0, 1, 2, 3, 33, most])
    return st.builds(_cycled, st.lists(entry, min_size=1, max_size=3), lengths)


def _cycled(few: list[Any], length: int) -> tuple[Any, ...]:
    return tuple(few[n % len(few)] for n in range(length))


def numbered_from_one(items: tuple[BatchItem, ...]) -> tuple[BatchItem, ...]:
    """The items of a batch, with roles that begin with the number of the item, from 1."""
    return numbered((None, *items), "{}.")[1:]


def numbered(entries: tuple[Any, ...], role: str) -> tuple[Any, ...]:
    """The entries, with stream roles that begin with `role` formatted with the position."""
    return tuple(_renamed(entry, role.format(n)) for n, entry in enumerate(entries))


def _renamed(value: Any, prefix: str) -> Any:
    def rename(part: Any) -> Any:
        if not isinstance(part, StreamRecord):
            return part
        return part.model_copy(update={"role": prefix + part.role.removeprefix("_")})

    return mapped(value, rename)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The record with `change` applied to each text, number and stream in it."""
    if isinstance(value, tuple):
        return tuple(mapped(part, change) for part in cast("tuple[object, ...]", value))
    if isinstance(value, BaseModel) and not isinstance(value, StreamRecord):
        fields = {name: mapped(getattr(value, name), change) for name in type(value).model_fields}
        return value.model_copy(update=fields)
    return change(value)
