"""The input and the output of a projection: the tool's complete output and the bounded envelope.

Both have the same five fields. A success has a result and no error; a failure has an error and no
result. A `CompleteOutput` holds a typed result of its family, whose streams may have any size. A
`CanonicalResult` holds plain JSON and needs no further data.
"""

from collections.abc import Iterable
from typing import Annotated, NamedTuple, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    SerializeAsAny,
    model_validator,
)

from tooltrail.records import canonical_json
from tooltrail.records._error_text import one_line
from tooltrail.records._model import Record, ToolName
from tooltrail.records._text_cuts import shorten
from tooltrail.records.budgets import MAX_MESSAGE_CHARS
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.errors import check_type
from tooltrail.records.plain_text import TOOL_NAME_CHARS
from tooltrail.records.states import InvocationState, Status
from tooltrail.records.streams import StreamRecord, iter_streams
from tooltrail.records.tool_errors import ErrorKind, ToolError

SUMMARY_CHARS = 200
"""Longest summary of a canonical result, in characters."""

_STATE_OF_KIND: dict[str, InvocationState] = {
    ErrorKind.PERMISSION_DENIED: "denied",
    ErrorKind.CANCELLED: "cancelled",
    ErrorKind.INTERRUPTED: "interrupted",
}


class ArtifactReference(Record):
    """The location of a stored payload: only a path, relative to the artifact root."""

    path: Annotated[str, Field(min_length=1)]


class Facts(NamedTuple):
    """The facts that lists of invocations show, for any family; None for a fact that is missing."""

    exit_status: int | None = None
    signal: int | None = None
    timed_out: bool | None = None


class FamilyOutput(Record):
    """The complete result of a tool: the base class of each family's results."""

    def summary(self) -> str:
        """One sentence of any length; `CompleteOutput.success` shortens it to `SUMMARY_CHARS`."""
        raise NotImplementedError

    def facts(self) -> Facts:
        """The facts that lists of invocations show."""
        return Facts()


class _Envelope(Record):
    tool_name: Annotated[str, Field(min_length=1, max_length=TOOL_NAME_CHARS)]
    status: Status

    @model_validator(mode="after")
    def _check_exclusive(self) -> Self:
        has = [getattr(self, name) is not None for name in ("result", "error")]
        if has != [self.status == "success", self.status == "error"]:
            raise ValueError(
                "a success has a result and no error; an error has an error and no result"
            )
        return self


def _as_written(error: ToolError) -> ToolError:
    """The error as it would be read back from JSON, without the bytes that JSON cannot hold."""
    return error.model_copy(update={"exact_message": None}) if error.exact_message else error


_WrittenError = Annotated[ToolError, AfterValidator(_as_written)]


def _summarized(value: object) -> object:
    return (one_line(value) or "(no summary)") if isinstance(value, str) else value


class CompleteOutput(_Envelope):
    """Everything that a tool produced, before anything is cut.

    Attributes:
        tool_name: the name that the model used, made recordable as in `ToolCall`.
        status: whether the tool did its work; a command that exits 1 is a success of the tool.
        summary_text: one sentence on one line: white space is collapsed, control characters are
            escaped, a blank summary becomes `(no summary)`. It is complete here, and cut to
            `SUMMARY_CHARS` in the canonical result.
        result: the typed result of the tool's family; None for an error.
        error: the error; None for a success.
        partial_output: the streams of a failure. The streams of a success are in its result. The
            JSON omits this field if it is empty.
    """

    tool_name: ToolName
    summary_text: Annotated[str, BeforeValidator(_summarized)]
    result: SerializeAsAny[FamilyOutput] | None = None
    error: _WrittenError | None = None
    partial_output: tuple[StreamRecord, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.partial_output and self.error is None:
            raise ValueError("only a failure has partial output")
        roles = [stream.role for stream in self.streams]
        if len(set(roles)) < len(roles):
            raise ValueError("two streams of one output have the same role")
        return self

    @classmethod
    def success(cls, tool_name: str, result: FamilyOutput, summary: str | None = None) -> Self:
        """The output of a tool that did its work.

        Without a summary, or with a blank one, `result.summary()` is used, cut to `SUMMARY_CHARS`.
        """
        check_type("result", result, FamilyOutput)
        given = one_line(summary or "")
        return cls(
            tool_name=tool_name,
            status="success",
            summary_text=given or one_line(result.summary(), SUMMARY_CHARS),
            result=result,
        )

    @classmethod
    def failure(
        cls, tool_name: str, error: ToolError, streams: Iterable[StreamRecord] = ()
    ) -> Self:
        """The output of a tool that failed; its summary is the message cut to `SUMMARY_CHARS`.

        A message with more than `MAX_MESSAGE_CHARS` or with lone surrogates is kept as a stream of
        the role `error.message`.

        Args:
            tool_name: the name that the model used.
            error: the error.
            streams: the tool's output before it failed; each role at most once.
        """
        kept, message, exact = list(streams), error.message, error.exact_message
        if exact is not None or len(message) > MAX_MESSAGE_CHARS:
            kept.append(StreamRecord.from_bytes("error.message", exact or message.encode()))
        return cls(
            tool_name=tool_name,
            status="error",
            summary_text=one_line(message, SUMMARY_CHARS),
            error=error.model_copy(update={"message": shorten(message, MAX_MESSAGE_CHARS)}),
            partial_output=tuple(kept),
        )

    @property
    def streams(self) -> tuple[StreamRecord, ...]:
        """All streams: those of the result in the order of its fields, then the partial output."""
        return (*iter_streams(self.result), *self.partial_output)

    def to_json(self) -> bytes:
        """The canonical JSON of everything; the bytes of streams are represented by digests."""
        without = None if self.partial_output else {"partial_output"}
        return canonical_json.encode(self.model_dump(exclude=without))

    @property
    def final_state(self) -> InvocationState:
        """The state in which an invocation with this output ends."""
        if self.error is None:
            return "success"
        return _STATE_OF_KIND.get(self.error.kind, "error")


class CanonicalResult(_Envelope):
    """The bounded, typed envelope that the runtime owns: exactly five fields, including nulls.

    Attributes:
        tool_name: the name that the model used.
        status: `success` or `error`.
        summary_text: one sentence, never empty, at most `SUMMARY_CHARS` characters.
        result: the family's result as JSON; None for an error.
        error: the bounded error; None for a success.
    """

    summary_text: Annotated[str, Field(min_length=1, max_length=SUMMARY_CHARS)]
    result: dict[str, JsonValue] | None
    error: _WrittenError | None

    def to_json(self) -> bytes:
        """The canonical JSON of the envelope; equal envelopes give equal bytes."""
        return canonical_json.encode(
            {
                "tool_name": self.tool_name,
                "status": self.status,
                "summary_text": self.summary_text,
                "result": self.result,
                "error": None if self.error is None else self.error.model_dump(),
            }
        )

    @classmethod
    def from_json(cls, data: bytes | str) -> Self:
        """Read an envelope that `to_json` wrote.

        Raises:
            InvalidRecordError: `data` is not canonical JSON.
            pydantic.ValidationError: the JSON is not an envelope.
        """
        return cls.model_validate(canonical_json.decode(data))

    @property
    def digest(self) -> Digest:
        """The digest of `to_json()`."""
        return digest_of(self.to_json())


class CompactedResult(CanonicalResult):
    """A canonical result from which `compact` left something out."""
