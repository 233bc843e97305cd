"""What a record that was set aside tells of its output, held against the files beside it."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import ValidationError

from tooltrail.artifacts import CapturedStream
from tooltrail.records import CompleteOutput, Family, InvalidRecordError, StreamRecord
from tooltrail.records.canonical_json import encode
from tooltrail.store._recording.stream_facts import streams_in
from tooltrail.store.asides import RECORD_FILE, AsideRecord


def as_told(record: AsideRecord, found: list[CapturedStream]) -> Iterator[CapturedStream]:
    """The streams with what the record tells of them besides their bytes, if it has an end."""
    if record.complete_output is None:
        yield from found
        return
    told = refuse_others(record, {s.record.role: (s.record.digest, s.record.size) for s in found})
    there = {stream.record.role: stream for stream in found}
    for role, facts in told.items():
        empty = CapturedStream(StreamRecord.from_bytes(role, b""), None)
        stream = there.get(role, empty)
        produced = ("produced_size", "produced_line_count", "loss_reason")
        known = {name: facts.get(name) for name in produced}
        yield stream.replaced(counted=stream.record.model_copy(update=known))


def refuse_others(
    record: AsideRecord, found: Mapping[str, tuple[str, int]]
) -> dict[str, dict[str, Any]]:
    """What a record tells of its streams, by role, when it is these that were found.

    Raises:
        InvalidRecordError: one is missing, has other bytes, or is not told of.
    """
    result = (record.complete_output or {}).get("result")
    told = {facts["role"]: facts for facts in streams_in(result)}
    for role in sorted({*told, *found}):
        facts = told.get(role)
        if facts is None:
            raise InvalidRecordError(f"{role}.zst is not told of in {RECORD_FILE}")
        if role not in found and facts.get("size"):
            raise InvalidRecordError(f"{role}.zst is missing")
        if role in found and found[role] != (facts["digest"], facts.get("size")):
            raise InvalidRecordError(f"{role}.zst was cut or altered since it was captured")
    return told


def _filled(value: object, streams: Mapping[str, StreamRecord]) -> object:
    """A result with its streams in the places where it tells of them."""
    match value:
        case {"role": str(role), "digest": str(), "produced_size": int()}:
            return streams[role]
        case dict():
            members = cast("dict[str, object]", value)
            return {name: _filled(member, streams) for name, member in members.items()}
        case list():
            return [_filled(member, streams) for member in cast("list[object]", value)]
        case _:
            return value


def output_of(
    document: Mapping[str, Any],
    family: Family,
    streams: Mapping[str, StreamRecord],
    *,
    is_exact: bool = True,
) -> CompleteOutput:
    """The output whose JSON is that of a record, with its streams by role.

    With `is_exact` off the record may leave out what has a default.

    Raises:
        InvalidRecordError: there is none in this family.
    """
    result = _filled(document.get("result"), streams)
    for kind in family.result_types:
        try:
            typed = None if result is None else kind.model_validate(result)
            output = CompleteOutput.model_validate({**document, "result": typed})
        except ValidationError:
            continue
        if not is_exact or output.to_json() == encode(dict(document)):
            return output
    raise InvalidRecordError(f"its complete output is none of family {family.name}")
