"""Facts of shell calls and of messages, as journal entries."""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from tooltrail.journal import Entry
from tooltrail.records import (
    CommandOutput,
    CompleteOutput,
    StreamRecord,
    default_families,
    default_policy,
)
from tooltrail.records.digests import digest_of
from tooltrail.records.facts import (
    CallEnded,
    CallStarted,
    MessageAdded,
    SessionOpened,
    Shown,
    StreamFact,
    ToolsOffered,
)

FAMILIES = default_families()
POLICY = default_policy(FAMILIES)
POLICY_JSON = POLICY.to_json()
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)

_numbers = itertools.count(1)


def next_id() -> UUID:
    """An id that no test has used yet."""
    return UUID(int=(7 << 76) | (2 << 62) | next(_numbers))


def moment(seconds: float = 0) -> datetime:
    """A time in seconds after the beginning of the test; the same in every run."""
    return EPOCH + timedelta(seconds=seconds)


def command(
    stdout: bytes | StreamRecord, stderr: bytes = b"", exit_status: int = 0, *, tool: str = "bash"
) -> CompleteOutput:
    """The output of a command."""
    out = stdout if isinstance(stdout, StreamRecord) else StreamRecord.from_bytes("stdout", stdout)
    result = CommandOutput(
        command="ls",
        stdout=out,
        stderr=StreamRecord.from_bytes("stderr", stderr),
        exit_status=exit_status,
    )
    return CompleteOutput.success(tool, result)


def started(
    session: UUID,
    call: UUID,
    *,
    arguments: bytes = b'{"command":"ls"}',
    at: float = 0,
    bodies: Sequence[bytes] = (),
    **members: Any,
) -> Entry:
    """The start of a call; a shell call, unless `members` changes that."""
    members = {"tool_name": "bash", "family": "command", "call_id": "toolu_1", **members}
    fact = CallStarted(
        session=session,
        id=call,
        at=moment(at),
        arguments=digest_of(arguments),
        policy=POLICY.digest,
        **members,
    )
    return Entry(fact, [arguments, *bodies], [POLICY_JSON])


def ended(
    session: UUID,
    call: UUID,
    output: bytes | StreamRecord | CompleteOutput = b"out\n",
    *,
    spooled: str | None = None,
    bodies: Sequence[bytes] = (),
    at: float = 1,
    exit_status: int | None = 0,
    **members: Any,
) -> Entry:
    """The end of a call.

    Args:
        session: session of the call.
        call: id of the call.
        output: a complete output, or the stdout of a command.
        spooled: path of stdout in the spool; without it, the bytes are in the entry.
        bodies: further bodies of the fact.
        at: seconds after the beginning of the test.
        exit_status: exit status in the fact.
        members: further members of the fact.
    """
    if not isinstance(output, CompleteOutput):
        output = command(output, exit_status=exit_status or 0)
    places = {} if spooled is None else {"stdout": spooled}
    document = output.to_json()
    members = {"state": "success", "duration_ms": 3, **members}
    fact = CallEnded(
        session=session,
        id=call,
        at=moment(at),
        output=digest_of(document),
        streams=tuple(StreamFact.of(one, places.get(one.role)) for one in output.streams),
        exit_status=exit_status,
        **members,
    )
    contents = [one.content or b"" for one in output.streams if one.role not in places]
    return Entry(fact, [document, *contents, *bodies])


def as_shown(
    canonical: bytes, receipt: bytes, *, renderer: str = "seen", version: int = 0, **members: Any
) -> Shown:
    return Shown(
        canonical=digest_of(canonical),
        receipt=digest_of(receipt),
        renderer=renderer,
        renderer_version=version,
        **members,
    )


def message(
    session: UUID,
    text: bytes = b"hello",
    *,
    id: UUID | None = None,  # noqa: A002
    at: float = 0,
    role: str = "user",
    **more: Any,
) -> Entry:
    """A message; `document`, `payload` and `extras` are bodies, all else a member of the fact."""
    names = ("document", "payload", "extras")
    bodies = {name: more.pop(name) for name in names if name in more}
    more |= {name: digest_of(body) for name, body in bodies.items()}
    fact = MessageAdded(
        session=session, id=id or next_id(), at=moment(at), role=role, text=digest_of(text), **more
    )
    return Entry(fact, [text, *bodies.values()])


def offered(session: UUID, *definitions: bytes, at: float = 0) -> Entry:
    """An offer of tools with these definitions."""
    tools = tuple(map(digest_of, definitions))
    fact = ToolsOffered(session=session, id=next_id(), at=moment(at), tools=tools)
    return Entry(fact, definitions)


def opened(
    session: UUID, *, at: float = 0, environment: bytes | None = None, **members: Any
) -> Entry:
    """The opening of a session; `environment` is a body."""
    if environment is not None:
        members["environment"] = digest_of(environment)
    fact = SessionOpened(session=session, at=moment(at), **members)
    return Entry(fact, [] if environment is None else [environment])


def changed(entry: Entry, **members: object) -> Entry:
    """The entry with changed members of its fact."""
    fact: Any = entry.fact.replaced(**members)
    return entry._replace(fact=fact)
