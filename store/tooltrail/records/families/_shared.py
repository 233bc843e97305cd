"""Types and helpers that several families share."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar, cast

from pydantic import AfterValidator, Field, JsonValue, model_serializer
from pydantic_core.core_schema import SerializerFunctionWrapHandler

from tooltrail.records import canonical_json
from tooltrail.records._model import Record, Sentence
from tooltrail.records._text_cuts import ACTING
from tooltrail.records.canonical_json import MAX_EMBEDDED_DEPTH, is_deeper_than
from tooltrail.records.cutting import Cutter, Shown
from tooltrail.records.envelope import CanonicalResult
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.readable_json import readable
from tooltrail.records.shortened_json import shorten_json
from tooltrail.records.streams import StreamRecord

MAX_MS = (1 << 64) - 1
"""The longest duration that the counters of any system can hold, in milliseconds."""

Number = Annotated[int, Field(ge=0, le=(1 << 63) - 1)]
"""A count or a line number that fits into an integer of every database."""

Milliseconds = Annotated[int, Field(ge=0, le=MAX_MS)]
ExitStatus = Annotated[int, Field(ge=0, le=255)]
SignalNumber = Annotated[int, Field(ge=1, le=128)]

NAME_CHARS = 240
"""Longest path, title or command that a result includes for one item of a list."""

SENTENCE_CHARS = 700
"""Longest sentence of a tool that a result includes outside of a preview."""


def _one_line_only(text: str) -> str:
    if one_line(text) != text:
        raise ValueError(
            "an identifier must not hold control characters, bidirectional controls, or white space"
            " other than single spaces inside"
        )
    return text


Identifier = Annotated[
    Sentence, Field(min_length=1, max_length=256), AfterValidator(_one_line_only)
]
"""A tool's name for a thing, which the model must repeat exactly. It is never cut or changed, not
even in a receipt; a text that would have to be changed is refused."""

RecordT = TypeVar("RecordT", bound=Record)

Json = dict[str, Any]
"""A canonical result, or an entry of one, as a renderer reads it."""


def json_of(canonical: CanonicalResult) -> Json:
    """The result of a success, for a renderer."""
    return canonical.result or {}


class SparseRecord(Record):
    """A record whose optional fields are left out of its JSON when they are None."""

    @model_serializer(mode="wrap")
    def _leave_out(self, handler: SerializerFunctionWrapHandler) -> dict[str, object]:
        members: dict[str, object] = handler(self)
        fields = type(self).__pydantic_fields__
        return {
            name: value
            for name, value in members.items()
            if value is not None or fields[name].is_required()
        }


def entry(output: Record, nullable: Collection[str] = (), /, **fields: object) -> Json:
    """A part of a canonical result: the fields of an output, some of them replaced.

    Fields in `fields` replace those of the output or are added. The other fields of the output are
    copied, except streams. A field that is None is left out.

    Args:
        output: the complete record.
        nullable: fields that are kept even if they are None.
        fields: the fields that differ between the output and the result.
    """
    streams = {name for name, value in output if isinstance(value, StreamRecord)}
    members = output.model_dump(exclude=streams | fields.keys()) | fields
    return {
        name: _dumped(value)
        for name, value in members.items()
        if value is not None or name in nullable
    }


def _dumped(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_dumped(one) for one in cast("Sequence[object]", value)]
    return value.model_dump() if isinstance(value, Record) else value


def bounded(
    output: Record, cutter: Cutter, nullable: Collection[str] = (), /, **fields: object
) -> Json:
    """The canonical result of an output, after all its parts were cut; see `entry`.

    `truncated` is true if anything was left out. All `*_artifact` indices point into `artifacts`;
    the artifact at `hidden_artifact` has the entries that lists leave out.
    """
    hidden = cutter.hidden_list()
    cut = {"truncated": cutter.truncated, "hidden_artifact": hidden, "artifacts": cutter.references}
    return entry(output, nullable, **cut, **fields)


def confirming(
    output: Record, cutter: Cutter, nullable: Collection[str] = (), /, **fields: object
) -> Json:
    """Like `bounded`, for short confirmations: `truncated` is present only if it is true."""
    result = bounded(output, cutter, nullable, **fields)
    if not result["truncated"]:
        del result["truncated"]
    return result


def bound_texts(record: RecordT, field: str, limits: Mapping[str, int], cutter: Cutter) -> RecordT:
    """A copy of a record with some of its texts cut; a text that is None stays None.

    Args:
        record: the record with the texts.
        field: path of the record in the result, for omissions; empty for the result itself.
        limits: most characters of each text, by its name in the record.
        cutter: counts what is left out.
    """
    texts = {name: getattr(record, name) for name in limits}
    prefix = field and f"{field}."
    return record.model_copy(
        update={
            name: cutter.text(f"{prefix}{name}", text, limits[name])
            for name, text in texts.items()
            if text is not None
        }
    )


def structured_fields(
    stream: StreamRecord, room: int, cutter: Cutter, name: str = "structured"
) -> dict[str, object]:
    """The fields of a JSON value in a result: the value itself, or a preview of it.

    The preview of an object or a list is again a JSON value; see `shorten_json`. The preview is
    text for a string, for a value that is too deep, and for a stream that lost bytes, is not JSON
    or is not completely in memory.

    Args:
        stream: the canonical JSON of the value.
        room: most characters of the preview.
        cutter: publishes the value and counts what is left out.
        name: name of the field with the value; the other fields are `NAME_preview` and so on.
    """
    value = _value_of(stream)
    preview: JsonValue = None
    shown_bytes = 0
    is_large = stream.size > room and cutter.need(stream) > room
    if is_large and isinstance(value, dict | list):
        preview, shown_bytes = shorten_json(value, room)
    if preview is not None and not is_deeper_than(preview, MAX_EMBEDDED_DEPTH):
        shown = Shown(truncated=True, artifact=cutter.attach(stream))
        cutter.count(stream.role, "bytes", stream.size, shown_bytes, "preview budget")
    else:
        shown = cutter.stream(stream, room)
        preview = shown.text
    fields: dict[str, object] = {f"{name}_artifact": shown.artifact}
    # Fields that are None are left out, so a JSON null can only be shown as text.
    if not shown.truncated and value is not None and not is_deeper_than(value, MAX_EMBEDDED_DEPTH):
        return fields | {name: value}
    return fields | {f"{name}_preview": preview, f"{name}_truncated": shown.truncated}


def _value_of(stream: StreamRecord) -> JsonValue:
    """The value of a stream of canonical JSON; None if bytes are missing, or are not such JSON."""
    whole = stream.head + stream.tail if stream.content is None else stream.content
    if not len(whole) == stream.size == stream.produced_size:
        return None
    try:
        return canonical_json.decode(whole)
    except InvalidRecordError:
        return None


_BREAKS = re.compile(rf"[\s\x00-\x1f{ACTING}]+")
"""White space, and characters that could move a cursor or change the direction of text."""


def one_line(text: str) -> str:
    """A label that cannot look like another line of a receipt; never longer than `text`."""
    return _BREAKS.sub(" ", text).strip()


def labelled(members: Json, labels: Mapping[str, str]) -> list[str]:
    """A line `LABEL: VALUE` for each member that is not missing or empty; `labels` is by name."""
    known = {label: members.get(name) for name, label in labels.items()}
    return [
        f"{label}: {one_line(str(one))}" for label, one in known.items() if one not in (None, "")
    ]


def joined(sections: Iterable[str], artifacts: Sequence[str] = ()) -> str:
    """Join the sections of a receipt with empty lines; the last section lists the artifacts."""
    listed = ["\n".join(["Artifacts:", *artifacts])] if artifacts else []
    return "\n".join(s if s.endswith("\n") else s + "\n" for s in [*sections, *listed])


def artifact_roles(result: Json) -> dict[int, str]:
    """The role of each artifact by index, derived from the name of the field with the index."""
    names = [name for name in result if name.endswith("_artifact")]
    return {result[name]: name.removesuffix("_artifact") for name in names}


def artifact_lines(result: Json, roles: Mapping[int, str]) -> list[str]:
    """A line `PATH (ROLE)` for each artifact of a result."""
    return [f"{a['path']} ({roles[n]})" for n, a in enumerate(result.get("artifacts", ()))]


def hidden_lines(result: Json, count: int, noun: str, detail: str = "") -> list[str]:
    """The line that says how many entries of a list are not shown; no line if all are shown.

    Args:
        result: the canonical result, whose `hidden_artifact` lists the hidden entries.
        count: number of entries that are not shown.
        noun: the noun for one entry.
        detail: more about the hidden entries.
    """
    if count <= 0:
        return []
    which = f"{noun} is" if count == 1 else f"{noun}s are"
    detail = detail and f": {detail}"
    index = result.get("hidden_artifact")
    where = "" if index is None else f"; listed in {result['artifacts'][index]['path']}"
    return [f"[{count:,} further {which} not shown{detail}{where}]"]


def receipt(sections: Iterable[str], result: Json, roles: Mapping[int, str] | None = None) -> str:
    """Join the sections of a receipt, and list the artifacts of the result at the end.

    Args:
        sections: the sections of the receipt.
        result: the canonical result.
        roles: roles of the artifacts by index; by default those from `artifact_roles`.
    """
    lines = artifact_lines(result, artifact_roles(result) if roles is None else roles)
    return joined(sections, lines)


def body_of(result: Json, name: str, room: int, heading: str = "") -> list[str]:
    """The section with the preview of a stream; no section if the preview is empty.

    Args:
        result: the canonical result.
        name: name of the stream in the result.
        room: characters for indented JSON; see `readable`.
        heading: the line above the text.
    """
    text = result.get(f"{name}_preview")
    if not text:
        return []
    (body,) = readable([(text, result.get(f"{name}_truncated", False))], room)
    return [f"{heading}:\n{body}" if heading else body]
