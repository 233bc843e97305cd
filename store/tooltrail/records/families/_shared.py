"""What the models of several families share."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, JsonValue, model_serializer
from pydantic_core.core_schema import SerializerFunctionWrapHandler

from tooltrail.records import canonical_json
from tooltrail.records._model import Record, Sentence
from tooltrail.records._text_cuts import ACTING
from tooltrail.records.canonical_json import MAX_EMBEDDED_DEPTH, is_deeper_than
from tooltrail.records.cutting import Cutter, Shown
from tooltrail.records.envelope import ArtifactReference
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.shortened_json import shorten_json
from tooltrail.records.streams import StreamRecord

MAX_MS = (1 << 64) - 1
"""The longest time that a counter of any system can tell, in milliseconds."""

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


class BoundedResult(SparseRecord):
    """The canonical result of a family that cuts: `bounded` fills these fields.

    Attributes:
        truncated: whether anything was left out.
        hidden_artifact: index of the artifact that has what lists leave out.
        artifacts: what the indices of this result point at.
    """

    truncated: bool = False
    hidden_artifact: int | None = None
    artifacts: tuple[ArtifactReference, ...] | None = None


def bounded(kind: type[RecordT], output: Record, cutter: Cutter, /, **fields: object) -> RecordT:
    """The canonical result of an output, when everything in it is cut.

    A field that is not given is that of the output with the same name, as it is, but no stream.
    The fields of `BoundedResult` are the cutter's. A `truncated` that may be None is never false.

    Args:
        kind: the model of the result.
        output: the complete output.
        cutter: what cut it.
        fields: what is not the same in the output and in the result.
    """
    wanted = kind.model_fields
    values = {
        name: value
        for name, value in output
        if name in wanted and not isinstance(value, StreamRecord)
    }
    if "hidden_artifact" in wanted:
        values["hidden_artifact"] = cutter.hidden_list()
    if "artifacts" in wanted:
        values["artifacts"] = cutter.references
    if "truncated" in wanted:
        is_optional = wanted["truncated"].default is None
        values["truncated"] = cutter.truncated or (None if is_optional else False)
    return kind.model_validate(values | fields)


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


def joined(sections: Iterable[str]) -> str:
    """The sections of a receipt with an empty line between them."""
    return "\n".join(s if s.endswith("\n") else s + "\n" for s in sections)


def artifact_lines(
    artifacts: Iterable[ArtifactReference], roles: Mapping[int | None, str]
) -> list[str]:
    """A line `PATH (ROLE)` for each artifact; `roles` is by index."""
    return [f"{a.path} ({roles.get(n, 'artifact')})" for n, a in enumerate(artifacts)]


def hidden_lines(
    count: int,
    noun: str,
    artifacts: Sequence[ArtifactReference] | None,
    index: int | None,
    detail: str = "",
) -> list[str]:
    """The line that says how many entries of a list are not shown; none when all are.

    Args:
        count: entries that are not shown.
        noun: what one of them is called.
        artifacts: of the result.
        index: of the list that names them, see `Cutter.hidden_list`.
        detail: what is known of them.
    """
    if count <= 0:
        return []
    which = f"{noun} is" if count == 1 else f"{noun}s are"
    detail = detail and f": {detail}"
    where = "" if artifacts is None or index is None else f"; listed in {artifacts[index].path}"
    return [f"[{count:,} further {which} not shown{detail}{where}]"]


def artifact_section(lines: Iterable[str]) -> list[str]:
    """The last section of a receipt, or none when there is no artifact."""
    text = "\n".join(lines)
    return [f"Artifacts:\n{text}"] if text else []


def receipt(
    sections: Iterable[str],
    artifacts: Iterable[ArtifactReference] | None,
    roles: Mapping[int | None, str],
) -> str:
    """The sections of a receipt, and at its end the artifacts; `roles` is by index."""
    return joined([*sections, *artifact_section(artifact_lines(artifacts or (), roles))])
