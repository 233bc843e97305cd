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

Number = Annotated[int, Field(ge=0, le=(1 << 63) - 1)]
"""A count, a number of a line or a duration that fits into an integer of every database."""

ExitStatus = Annotated[int, Field(ge=0, le=255)]

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
    """A part of a canonical result: an output, with `fields` added or in place of its own.

    Streams are left out. So is a field that is None, unless `nullable` has its name.
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
    """A copy of a record with each text of `limits` cut to its limit; None stays None.

    `field` is the path of the record in the result, for omissions; empty for the result itself.
    """
    prefix = field and f"{field}."
    texts = {name: text for name in limits if (text := getattr(record, name)) is not None}
    return record.model_copy(
        update={
            name: cutter.text(f"{prefix}{name}", text, limits[name]) for name, text in texts.items()
        }
    )


def structured_fields(
    stream: StreamRecord, room: int, cutter: Cutter, name: str = "structured"
) -> dict[str, object]:
    """The fields of a JSON value in a result: the value as `name`, or its preview in `room` chars.

    The preview of an object or a list is again a JSON value; see `shorten_json`. The preview is
    text for a string, for a value that is too deep, and for a stream that lost bytes, is not JSON
    or is not completely in memory.
    """
    value = _value_of(stream)
    if isinstance(value, dict | list) and cutter.need(stream) > room:
        short = shorten_json(value, room)
        cutter.count(stream.role, "bytes", stream.size, short.shown_bytes, "preview budget")
        shown = Shown(truncated=True, artifact=cutter.attach(stream))
        return shown.named(name) | {f"{name}_preview": short.value}
    shown = cutter.stream(stream, room)
    # Fields that are None are left out, so a JSON null can only be shown as text.
    return shown.named(name) if shown.truncated or value is None else {name: value}


def _value_of(stream: StreamRecord) -> JsonValue:
    """The value of a stream; None if bytes are missing or not JSON, or if it is too deep."""
    whole = stream.head + stream.tail if stream.content is None else stream.content
    if not len(whole) == stream.size == stream.produced_size:
        return None
    try:
        value = canonical_json.decode(whole)
    except InvalidRecordError:
        return None
    return None if is_deeper_than(value, MAX_EMBEDDED_DEPTH) else value


_BREAKS = re.compile(rf"[\s\x00-\x1f{ACTING}]+")
"""White space, and characters that could move a cursor or change the direction of text."""


def one_line(text: str) -> str:
    """A label that cannot look like another line of a receipt; never longer than `text`."""
    return _BREAKS.sub(" ", text).strip()


def labelled(members: Json, labels: Mapping[str, str]) -> list[str]:
    """A line `LABEL: VALUE` for each member that is not missing or empty; `labels` is by name."""
    return [
        f"{label}: {one_line(str(value))}"
        for name, label in labels.items()
        if (value := members.get(name)) not in (None, "")
    ]


def path_at(result: Json, index: int | None, before: str = "; listed in ") -> str:
    """The path of an artifact after the words `before`; empty if `index` is None."""
    return "" if index is None else f"{before}{result['artifacts'][index]['path']}"


def hidden_lines(result: Json, count: int, noun: str, detail: str = "") -> list[str]:
    """A line that says how many entries are hidden and where they are listed; none for 0.

    `noun` is for one entry; `detail` says more about the entries.
    """
    if count <= 0:
        return []
    which = f"{noun} is" if count == 1 else f"{noun}s are"
    where = path_at(result, result.get("hidden_artifact"))
    return [f"[{count:,} further {which} not shown{detail and f': {detail}'}{where}]"]


def body_of(result: Json, name: str, room: int, heading: str = "") -> list[str]:
    """The section with the preview of the stream `name`; no section if the preview is empty.

    `room` is for indented JSON; see `readable`. The heading is the line above the text.
    """
    text = result.get(f"{name}_preview")
    if not text:
        return []
    flag = f"{name}_truncated"
    (body,) = readable([(text, result[flag if flag in result else "truncated"])], room)
    return [f"{heading}:\n{body}" if heading else body]


def receipt(sections: Iterable[str], result: Json, roles: Mapping[int, str] | None = None) -> str:
    """Join the sections of a receipt with empty lines; the last one lists the artifacts.

    `roles` has roles of artifacts by index, where no field of the result names them.
    """
    return joined(sections, artifact_lines(result, roles))


def joined(sections: Iterable[str], artifacts: Sequence[str] = ()) -> str:
    """Like `receipt`, with the lines of the artifacts."""
    listed = ["\n".join(["Artifacts:", *artifacts])] if artifacts else []
    return "\n".join(s if s.endswith("\n") else s + "\n" for s in [*sections, *listed])


def artifact_lines(result: Json, roles: Mapping[int, str] | None = None) -> list[str]:
    """A line `PATH (ROLE)` for each artifact: the role of the field with the index."""
    if "artifacts" not in result:
        return []
    fields = {index: name for name, index in result.items() if name.endswith("_artifact")}
    names = {n: name.removesuffix("_artifact") for n, name in fields.items()} | dict(roles or {})
    return [f"{a['path']} ({names[n]})" for n, a in enumerate(result["artifacts"])]
