"""What an importer finds in a source, in words that are the same for every format.

A reader yields events in the order of the source. Ids are those of the source: `recording` derives
the ids of our records from them, so that importing a source again finds the same records.

Members of the type `Any` are as they are in the source. A value of an unexpected type counts as
missing. A time is a text in ISO 8601, or a number of seconds since 1970.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, cast

Json: TypeAlias = Mapping[str, Any]

NOTHING: Final[Json] = MappingProxyType({})
"""An object without members."""


def object_of(value: Any, *names: str) -> dict[str, Any]:
    """The JSON object at a path of members; one without members if there is none."""
    for name in names:
        value = cast("Json", value).get(name) if isinstance(value, dict) else None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: Any, *names: str) -> list[Any]:
    """The items of the JSON array at a path of members; none if there is no array."""
    *path, last = names or ("",)
    value = object_of(value, *path).get(last) if names else value
    return [*cast("Iterable[Any]", value)] if isinstance(value, list) else []


def objects_of(value: Any, *names: str) -> list[dict[str, Any]]:
    """The items of the JSON array at a path, as objects: any other item has no members."""
    return [*map(object_of, list_of(value, *names))]


def first_of(value: Any, *names: str) -> Json:
    """The first item of the JSON array at a path, as an object."""
    return next(iter(objects_of(value, *names)), NOTHING)


def names_in(spelled: str) -> frozenset[str]:
    """The names in a text, which are separated by spaces."""
    return frozenset(spelled.split())


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
    """A session, at its first line. Of a session that is known already, nothing is recorded.

    Attributes:
        session: id of the session in the source.
        at: when it began.
        agent: name of the agent.
        parent: id of the session that started this one.
        title: a short title.
        environment: where it ran: `agent_version`, `cwd`, `git_branch`, `git_commit`, …
    """

    session: str
    at: Any
    agent: str | None = None
    parent: Any = None
    title: Any = None
    environment: Json = NOTHING


class CallFound(NamedTuple):
    """A tool call: a block of the message that asks for it, or an event if no message does.

    Attributes:
        call_id: the provider's id of the call; it may repeat. Of a call in a message that has none,
            the place in the message is the id.
        tool_name: the name that the model used.
        arguments: the arguments as the model sent them: a text, or any JSON value.
        is_command: whether the tool runs a command.
        at: time of the call; None for that of its message.
        session: id of the session, if no message asks for the call.
        more: further members of the call in its message: `kind`, `namespace`.
    """

    call_id: Any
    tool_name: str
    arguments: Any
    is_command: bool = False
    at: Any = None
    session: str = ""
    more: Json = NOTHING


class MessageFound(NamedTuple):
    """A message, with the calls that it asks for.

    Attributes:
        session: id of the session.
        message: id of the message in the source.
        at: time of the message.
        role: the author.
        blocks: the content: calls, and the JSON of the other blocks of `tooltrail.records.Message`.
        origin: the JSON of its `Origin`. Recorded only for the role `assistant`, and for a
            message `tool` without blocks, which has the tokens of an answer.
        extras: further members of the source's line, verbatim.
    """

    session: str
    message: str
    at: Any
    role: str
    blocks: Sequence[Json | CallFound]
    origin: Json = NOTHING
    extras: Json = NOTHING


class OutputFound(NamedTuple):
    """What the source keeps of the tool's own output, beside what the model saw.

    Attributes:
        streams: texts or bytes by role: `stdout`, `stderr`, `combined`, `content`.
        structured: a JSON value that the tool returned; None if there is none.
        command: the command line, for a command.
        cwd: its working directory.
        exit_status: its exit status; None if unknown.
        lost: for a stream that is not complete in the source, the bytes that the tool produced; 0
            if the source does not say.
    """

    streams: Mapping[str, Any] = NOTHING
    structured: Any = None
    command: Any = None
    cwd: Any = None
    exit_status: Any = None
    lost: Mapping[str, int] = NOTHING


def output_of(returned: Any) -> OutputFound | None:
    """The output of a tool that returned a text or any other JSON value; None for null."""
    if isinstance(returned, str):
        return OutputFound({"content": returned})
    return None if returned is None else OutputFound(structured=returned)


FAILED: Final = "tool_execution_failed"
"""The kind of a failure of which the source says no more."""


class ResultFound(NamedTuple):
    """The result of a call.

    Attributes:
        session: id of the session.
        call_id: the provider's id of the call.
        at: time of the result.
        receipt: the content that the model saw; None if the source does not have it. Parts of it
            that are no texts, such as images, become `extras`.
        output: the tool's own output; None if the source does not have it.
        failure: the kind of the error, see `tooltrail.records.ErrorKind`; None if the tool did not
            fail, as far as the source says. A command that exits with a status did not fail.
        duration_ms: how long the tool ran, as the source says.
        extras: further members of the source's line, verbatim.
        message: why the tool failed, if the receipt does not say.
        exit_status: the exit status, if the source says it without the output.
    """

    session: str
    call_id: str
    at: Any
    receipt: Any
    output: OutputFound | None = None
    failure: str | None = None
    duration_ms: Any = None
    extras: Json = NOTHING
    message: str = ""
    exit_status: Any = None


class SessionEnded(NamedTuple):
    """The end of a session, with the reason that the source gives."""

    session: str
    at: Any
    reason: Any = None


class Skipped(NamedTuple):
    """A value that is not part of the conversation, such as a progress report of the agent.

    Attributes:
        what: its type in the source.
        is_known: whether this program knows the type. The line of an unknown type is kept verbatim,
            unless it stands before the first session, which is then unknown.
    """

    what: str
    is_known: bool


Found: TypeAlias = SessionFound | SessionEnded | MessageFound | CallFound | ResultFound | Skipped
Event: TypeAlias = Found | None
"""What one value of a source says; None if its type is known but it adds nothing by itself."""


class FileReader:
    """What the readers of all formats begin with.

    Args:
        path: the file that is read; its name is the id of a session that has none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._session = path.stem
