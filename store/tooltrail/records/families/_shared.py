"""What the models of several families share."""

from collections.abc import Mapping
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, model_serializer
from pydantic_core.core_schema import SerializerFunctionWrapHandler

from tooltrail.records import canonical_json
from tooltrail.records._model import Record, Sentence
from tooltrail.records.cutting import Cutter, Shown
from tooltrail.records.families._receipts import one_line
from tooltrail.records.streams import StreamRecord

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


def bound_texts(record: RecordT, field: str, limits: Mapping[str, int], cutter: Cutter) -> RecordT:
    """A copy of a record with some of its texts cut; one that is None stays so.

    Args:
        record: what holds the texts.
        field: where it stands in the result, for the names of omissions.
        limits: characters of each text, by its name in the record.
        cutter: counts what is left out.
    """
    texts = {name: getattr(record, name) for name in limits}
    return record.model_copy(
        update={
            name: cutter.text(f"{field}.{name}", text, limits[name])
            for name, text in texts.items()
            if text is not None
        }
    )


def structured_fields(
    stream: StreamRecord, shown: Shown, name: str = "structured"
) -> dict[str, object]:
    """The fields of a JSON value in a result: the value itself, or a preview of its text.

    Args:
        stream: the canonical JSON of the value.
        shown: what the cutter made of it.
        name: of the field that holds the value; the others are `NAME_preview` and the like.
    """
    fields: dict[str, object] = {f"{name}_artifact": shown.artifact}
    if not shown.truncated:
        whole = stream.head + stream.tail if stream.content is None else stream.content
        value = canonical_json.decode(whole)
        # A sparse record leaves None out, so that null can only stand there as text.
        if value is not None and not canonical_json.is_deeper_than(
            value, canonical_json.MAX_EMBEDDED_DEPTH
        ):
            return fields | {name: value}
    return fields | {f"{name}_preview": shown.text, f"{name}_truncated": shown.truncated}
