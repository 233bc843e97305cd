"""What the models of several families share."""

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
"""The longest time that a counter of any system can tell, in milliseconds."""

Number = Annotated[int, Field(ge=0, le=(1 << 63) - 1)]
"""A count, or the number of a line, that databases hold in an integer."""

Milliseconds = Annotated[int, Field(ge=0, le=MAX_MS)]
ExitStatus = Annotated[int, Field(ge=0, le=255)]
SignalNumber = Annotated[int, Field(ge=1, le=128)]

NAME_CHARS = 240
"""Longest path, title or command that a result repeats for one item of a list."""

SENTENCE_CHARS = 700
"""Longest sentence of a tool that a result repeats outside of a preview."""


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
"""What a tool calls a thing, for the model to say again: kept whole, or refused. What a receipt
prints of it is the identifier itself."""

RecordT = TypeVar("RecordT", bound=Record)

Json = dict[str, Any]
"""A canonical result or an entry of one, as a renderer reads it."""


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
    """A part of a canonical result: the fields of an output, with those that were cut.

    A field that is not given is that of the output with the same name, as it is, but no stream. A
    field that is None is left out.

    Args:
        output: the complete record.
        nullable: fields that stay when they are None.
        fields: what is not the same in the output and in the result.
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
    """The canonical result of an output, when everything in it is cut; see `entry`.

    `truncated` says whether anything was left out, and the indices point into `artifacts`. The
    artifact at `hidden_artifact` has what lists leave out.
    """
    hidden = cutter.hidden_list()
    cut = {"truncated": cutter.truncated, "hidden_artifact": hidden, "artifacts": cutter.references}
    return entry(output, nullable, **cut, **fields)


def confirming(
    output: Record, cutter: Cutter, nullable: Collection[str] = (), /, **fields: object
) -> Json:
    """Like `bounded`, for an action that a few short fields confirm: no idle `truncated`."""
    result = bounded(output, cutter, nullable, **fields)
    if not result["truncated"]:
        del result["truncated"]
    return result


def bound_texts(record: RecordT, field: str, limits: Mapping[str, int], cutter: Cutter) -> RecordT:
    """A copy of a record with some of its texts cut; one that is None stays so.

    Args:
        record: what holds the texts.
        field: where it stands in the result, for the names of omissions; empty for the result.
        limits: characters of each text, by its name in the record.
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

    The preview of an object or a list is a JSON value again, see `shorten_json`. A text, a value
    that is too deep, and a stream that lost bytes, is no JSON or is not at hand, have a preview of
    the stream's text.

    Args:
        stream: the canonical JSON of the value.
        room: characters of the preview.
        cutter: publishes the value and counts what is left out.
        name: of the field that holds the value; the others are `NAME_preview` and the like.
    """
    value = _value_of(stream)
    preview: JsonValue = None
    shown_bytes = 0
    is_large = stream.size > room and cutter.sharing.need(stream) > room
    if is_large and isinstance(value, dict | list):
        preview, shown_bytes = shorten_json(value, room)
    if preview is not None and not is_deeper_than(preview, MAX_EMBEDDED_DEPTH):
        shown = Shown(truncated=True, artifact=cutter.attach(stream))
        cutter.count(stream.role, "bytes", stream.size, shown_bytes, "preview budget")
    else:
        shown = cutter.stream(stream, room)
        preview = shown.text
    fields: dict[str, object] = {f"{name}_artifact": shown.artifact}
    # A sparse record leaves None out, so that null can only stand there as text.
    if not shown.truncated and value is not None and not is_deeper_than(value, MAX_EMBEDDED_DEPTH):
        return fields | {name: value}
    return fields | {f"{name}_preview": preview, f"{name}_truncated": shown.truncated}


def _value_of(stream: StreamRecord) -> JsonValue:
    """The value of a stream of canonical JSON; None if bytes are missing, or are no such JSON."""
    whole = stream.head + stream.tail if stream.content is None else stream.content
    if not len(whole) == stream.size == stream.produced_size:
        return None
    try:
        return canonical_json.decode(whole)
    except InvalidRecordError:
        return None


_BREAKS = re.compile(rf"[\s\x00-\x1f{ACTING}]+")
"""White space, and characters that could move a cursor or turn the direction of what follows."""


def one_line(text: str) -> str:
    """A label that cannot pass for another line of a receipt; never longer than `text`."""
    return _BREAKS.sub(" ", text).strip()


def labelled(members: Json, labels: Mapping[str, str]) -> list[str]:
    """A line `LABEL: VALUE` for each member that is there and not empty; labels are by name."""
    known = {label: members.get(name) for name, label in labels.items()}
    return [
        f"{label}: {one_line(str(one))}" for label, one in known.items() if one not in (None, "")
    ]


def joined(sections: Iterable[str], artifacts: Sequence[str] = ()) -> str:
    """The sections of a receipt with an empty line between them; the last one lists artifacts."""
    listed = ["\n".join(["Artifacts:", *artifacts])] if artifacts else []
    return "\n".join(s if s.endswith("\n") else s + "\n" for s in [*sections, *listed])


def artifact_roles(result: Json) -> dict[int, str]:
    """The role of each artifact of a result by its index, as the field with the index says."""
    names = [name for name in result if name.endswith("_artifact")]
    return {result[name]: name.removesuffix("_artifact") for name in names}


def artifact_lines(result: Json, roles: Mapping[int, str]) -> list[str]:
    """A line `PATH (ROLE)` for each artifact of a result."""
    return [f"{a['path']} ({roles[n]})" for n, a in enumerate(result.get("artifacts", ()))]


def hidden_lines(result: Json, count: int, noun: str, detail: str = "") -> list[str]:
    """The line that says how many entries of a list are not shown; none when all are.

    Args:
        result: the canonical result, whose `hidden_artifact` lists them.
        count: entries that are not shown.
        noun: what one of them is called.
        detail: what is known of them.
    """
    if count <= 0:
        return []
    which = f"{noun} is" if count == 1 else f"{noun}s are"
    detail = detail and f": {detail}"
    index = result.get("hidden_artifact")
    where = "" if index is None else f"; listed in {result['artifacts'][index]['path']}"
    return [f"[{count:,} further {which} not shown{detail}{where}]"]


def receipt(sections: Iterable[str], result: Json, roles: Mapping[int, str] | None = None) -> str:
    """The sections of a receipt, and at its end the artifacts of the result.

    Args:
        sections: of the receipt.
        result: the canonical result.
        roles: of the artifacts by index; by default those that the result says.
    """
    lines = artifact_lines(result, artifact_roles(result) if roles is None else roles)
    return joined(sections, lines)


def body_of(result: Json, name: str, room: int, heading: str = "") -> list[str]:
    """The section with the preview of a stream; none when the preview is empty.

    Args:
        result: the canonical result.
        name: of the stream in the result.
        room: characters for JSON that is laid out, see `readable`.
        heading: what stands above the text.
    """
    text = result.get(f"{name}_preview")
    if not text:
        return []
    (body,) = readable([(text, result.get(f"{name}_truncated", False))], room)
    return [f"{heading}:\n{body}" if heading else body]
