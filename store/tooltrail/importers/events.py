"""What an importer finds in a source, in words that are the same for every format.

A reader yields events in the order of the source. Ids are those of the source: `recording` derives
the ids of our records from them, so that importing a source again finds the same records.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, cast

Json: TypeAlias = Mapping[str, Any]

NOTHING: Final[Json] = MappingProxyType({})
"""An object without members."""


def object_of(value: Any) -> dict[str, Any]:
    """The members of a JSON object; none for any other value."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """The items of a JSON array; none for any other value."""
    return [*cast("Iterable[Any]", value)] if isinstance(value, list) else []


class Line(NamedTuple):
    """One JSON value of a source, and where it stands.

    Attributes:
        offset: offset of its first byte in the file.
        data: its bytes.
        value: the value.
        has_floats: whether a number in it is not an integer.
        number: number of its line, from 1.
    """

    offset: int
    data: bytes
    value: Any
    has_floats: bool = True
    number: int = 1


class SessionFound(NamedTuple):
    """A session, at its first line.

    Attributes:
        session: id of the session in the source.
        at: when it began, in ISO 8601; None if the source does not say.
        agent: name of the agent.
        parent: id of the session that started this one.
        title: a short title.
        environment: where it ran: `agent_version`, `cwd`, `git_branch`, `git_commit`, …
    """

    session: str
    at: str | None
    agent: str | None = None
    parent: str | None = None
    title: str | None = None
    environment: Json = NOTHING


class MessageFound(NamedTuple):
    """A message, with the calls that it asks for.

    Attributes:
        session: id of the session.
        message: id of the message in the source.
        at: time of the message.
        role: the author.
        blocks: the content: the JSON of the blocks of `tooltrail.records.Message`.
        origin: the JSON of its `Origin`; empty if no provider answered.
        extras: further members of the source's line, verbatim.
    """

    session: str
    message: str
    at: str | None
    role: str
    blocks: Sequence[Json]
    origin: Json = NOTHING
    extras: Json = NOTHING


class CallFound(NamedTuple):
    """A tool call that the model asked for.

    Attributes:
        session: id of the session.
        call_id: the provider's id of the call; it may repeat.
        at: time of the call.
        tool_name: the name that the model used.
        arguments: the arguments as the model sent them.
        message: id of the message that asked for it.
        position: position among the calls of that message, from 0.
        is_command: whether the tool runs a command.
    """

    session: str
    call_id: str
    at: str | None
    tool_name: str
    arguments: str
    message: str | None = None
    position: int = 0
    is_command: bool = False


class OutputFound(NamedTuple):
    """What the source keeps of the tool's own output, beside what the model saw.

    Attributes:
        streams: bytes by role: `stdout`, `stderr`, `combined`, `content`.
        structured: a JSON value that the tool returned; None if there is none.
        command: the command line, for a command.
        cwd: its working directory.
        exit_status: its exit status; None if unknown.
        lost: for a stream that is not complete in the source, the bytes that the tool produced; 0
            if the source does not say.
    """

    streams: Mapping[str, bytes] = NOTHING
    structured: Any = None
    command: str | None = None
    cwd: str | None = None
    exit_status: int | None = None
    lost: Mapping[str, int] = NOTHING


class ResultFound(NamedTuple):
    """The result of a call.

    Attributes:
        session: id of the session.
        call_id: the provider's id of the call.
        at: time of the result.
        receipt: the text that the model saw; None if the source does not have it.
        output: the tool's own output; None if the source does not have it.
        is_error: whether the tool failed, as far as the source says. A command that exits with a
            status did not fail.
        kind: kind of the error; see `tooltrail.records.ErrorKind`.
        duration_ms: how long the tool ran, as the source says.
        extras: further members of the source's line, verbatim.
        message: why the tool failed, if the receipt does not say.
        exit_status: the exit status, if the source says it without the output.
    """

    session: str
    call_id: str
    at: str | None
    receipt: str | None
    output: OutputFound | None = None
    is_error: bool = False
    kind: str = "tool_execution_failed"
    duration_ms: int | None = None
    extras: Json = NOTHING
    message: str = ""
    exit_status: int | None = None


class SessionEnded(NamedTuple):
    """The end of a session, with the reason that the source gives."""

    session: str
    at: str | None
    reason: str | None = None


class Skipped(NamedTuple):
    """A value that is not part of the conversation, such as a progress report of the agent.

    Attributes:
        what: its type in the source.
        is_known: whether this program knows the type. The line of an unknown type is kept verbatim,
            unless it stands before the first session, which is then unknown.
    """

    what: str
    is_known: bool


Event: TypeAlias = SessionFound | SessionEnded | MessageFound | CallFound | ResultFound | Skipped
