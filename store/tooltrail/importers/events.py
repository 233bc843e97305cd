"""What an importer finds in a source, in words that are the same for every format.

A reader yields events in the order of the source. Ids are those of the source: `recording` derives
the ids of our records from them, so that importing a source again finds the same records.

Members of the type `Any` are as they are in the source. A value of an unexpected type counts as
missing. A time is a text in ISO 8601, or a number of seconds since 1970.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from tooltrail.importers.values import NOTHING, Json


class Session(NamedTuple):
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


class Call(NamedTuple):
    """A tool call: a block of the message that asks for it, or an event.

    An event adds nothing if its call is recorded already and has no result yet.

    Attributes:
        call_id: the provider's id of the call; it may repeat. Of a call in a message that has none,
            the place in the message is the id.
        tool_name: the name that the model used.
        arguments: the arguments as the model sent them: a text, or any JSON value.
        is_command: whether the tool runs a command.
        at: time of the call; None for that of its message.
        session: id of the session, for an event.
        more: further members of the call in its message: `kind`, `namespace`.
    """

    call_id: Any
    tool_name: str
    arguments: Any
    is_command: bool = False
    at: Any = None
    session: str = ""
    more: Json = NOTHING


class Message(NamedTuple):
    """A message, with the calls that it asks for.

    Attributes:
        session: id of the session.
        message: id of the message in the source.
        at: time of the message.
        role: the author; a role that no record has counts as `user`.
        content: the content as the source spells it: a text, a part, a list of parts and calls,
            or a tuple of several contents and calls.
        origin: the JSON of its `Origin`. Recorded only for the role `assistant`, and for a
            message `tool` without content, which has the tokens of an answer.
        extras: further members of the source's line, verbatim.
    """

    session: str
    message: str
    at: Any
    role: Any
    content: Any
    origin: Json = NOTHING
    extras: Json = NOTHING


class Output(NamedTuple):
    """What the source keeps of the tool's own output, beside what the model saw.

    Attributes:
        streams: texts or bytes by role: `stdout`, `stderr`, `combined`, `content`. A command has
            `stdout` and `stderr`, or `combined` alone; the ingester rejects any other set. A text
            may be cut by the agent, bytes are complete.
        structured: a JSON value that the tool returned; None if there is none.
        command: the command line, for a command.
        cwd: its working directory.
        exit_status: its exit status; None if unknown.
        lost: for a stream that is not complete in the source, the bytes that the tool produced; 0
            if the source does not say. Cuts that a text itself names need not be here.
    """

    streams: Mapping[str, Any] = NOTHING
    structured: Any = None
    command: Any = None
    cwd: Any = None
    exit_status: Any = None
    lost: Mapping[str, int] = NOTHING


def exit_status_of(value: Any) -> int | None:
    """An exit status, 0 to 255; None for any other value."""
    return value if type(value) is int and value in range(256) else None


def output_of(returned: Any) -> Output | None:
    """The output of a tool that returned a text or any other JSON value; None for null."""
    if isinstance(returned, str):
        return Output({"content": returned})
    return None if returned is None else Output(structured=returned)


FAILED: Final = "tool_execution_failed"
"""The kind of a failure of which the source says no more."""


class Result(NamedTuple):
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
    output: Output | None = None
    failure: str | None = None
    duration_ms: Any = None
    extras: Json = NOTHING
    message: str = ""
    exit_status: Any = None


class SessionEnd(NamedTuple):
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


Found: TypeAlias = Session | SessionEnd | Message | Call | Result | Skipped
Event: TypeAlias = Found | None
"""What one value of a source says; None if its type is known but it adds nothing by itself."""


class Line(NamedTuple):
    """One JSON value of a source, or a part that cannot be read, and where it stands.

    Attributes:
        offset: offset of its first byte in the file.
        data: its bytes.
        value: the value; None for a damaged part.
        number: number of its line, from 1.
        damage: why the part cannot be read; empty for a value.
        is_cut: whether the writer may still complete the part: it ends the file, or begins a value
            on many lines.
    """

    offset: int
    data: bytes
    value: Any
    number: int = 1
    damage: str = ""
    is_cut: bool = False


class FileReader(ABC):
    """Reads the lines of one file, in order.

    Args:
        path: the file; its name is the id of a session that has none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._session = path.stem
        self._found: set[tuple[str, ...]] = set()

    def _is_new(self, *names: str) -> bool:
        """Whether something with these names is in the file for the first time."""
        is_new = names not in self._found
        self._found.add(names)
        return is_new

    @abstractmethod
    def read(self, line: Line) -> Iterable[Event]:
        """The events of one line.

        A line without events is of an unknown type. For a line of a known type that adds nothing,
        a reader yields None.
        """
