"""Small sources of imports, and a store that reads what was imported."""

import json
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.evidence import check_evidence, problems_of

from tooltrail.importers import Imported, Importer
from tooltrail.importers.values import list_of, object_of
from tooltrail.records import Message
from tooltrail.redaction import default_rules
from tooltrail.store import InvocationDetail, MessageView, Reader, open_store

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


def write_lines(path: Path, values: Iterable[Any]) -> Path:
    """A file with one JSON value on each line."""
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in values))
    return path


def write_document(path: Path, value: Any) -> Path:
    """A file with one JSON value on many lines."""
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2))
    return path


def import_one(folder: Path, path: Path, *, redact: bool = True) -> Imported:
    """Import a file into the spool of the store in a folder."""
    return Importer(folder / "tooltrail.db-spool", default_rules() if redact else None).import_file(
        path
    )


@contextmanager
def opened(folder: Path) -> Generator[Reader]:
    """Read the store in a folder."""
    with open_store(folder / "tooltrail.db") as store:
        store.ingest()
        yield store.reader


def calls_in(reader: Reader) -> list[InvocationDetail]:
    """Every call, oldest first, with its surfaces."""
    found = reader.invocations(oldest_first=True)
    return [reader.invocation(one.id) for one in found.items]


def only_call(folder: Path, lines: Iterable[Any] | None = None) -> InvocationDetail:
    """The only call in the store in a folder, where lines are imported first."""
    if lines is not None:
        import_one(folder, write_lines(folder / "a.jsonl", lines))
    with opened(folder) as reader:
        (call,) = calls_in(reader)
    return call


def receipt_of(call: InvocationDetail) -> str | None:
    """What the model saw of a call."""
    return None if call.receipt is None else call.receipt.text


def tools_of_child_and_parent(folder: Path) -> tuple[str, str]:
    """The only tool in the only session of a sub-agent, and in the session that started it."""
    with opened(folder) as reader:
        child, parent = sorted(reader.sessions(), key=lambda one: one.parent_id is None)
        tools = {call.summary.session_id: call.summary.tool_name for call in calls_in(reader)}
    assert (child.parent_id, len(tools)) == (parent.id, 2)
    return tools[child.id], tools[parent.id]


def said_in(folder: Path) -> list[tuple[str, str]]:
    """The role and the text of each message of the only session."""
    with opened(folder) as reader:
        return [(one.role, one.text) for one in messages_in(reader)]


def output_of(folder: Path, detail: InvocationDetail, role: str) -> bytes:
    """The bytes of a stream of a call in the store in a folder."""
    with opened(folder) as reader:
        return stream_of(reader, detail, role)


def messages_in(reader: Reader) -> list[MessageView]:
    """The messages of the only session."""
    (session,) = reader.sessions()
    return reader.conversation(session.id)[1]


def assert_intact(folder: Path, *, is_complete: bool = True) -> None:
    """Check that no fact was rejected, and that every row is as its fact says."""
    with open_store(folder / "tooltrail.db") as store:
        check_evidence(store, is_complete=is_complete)


def stream_of(reader: Reader, detail: InvocationDetail, role: str) -> bytes:
    """The bytes of a stream of a call."""
    stream = detail.stream(role)
    assert stream is not None
    with reader.open_stream(stream) as source:
        return source.read()


def claude_line(kind: str, content: Any, n: int, **more: Any) -> dict[str, Any]:
    """A line of Claude Code."""
    return {
        "type": kind,
        "uuid": f"00000000-0000-0000-0000-{n:012}",
        "parentUuid": None,
        "timestamp": f"2026-03-25T02:17:{n % 60:02}.000Z",
        "sessionId": "5e55",
        "cwd": "/work",
        "gitBranch": "main",
        "version": "2.1.62",
        "isSidechain": False,
        "message": {"role": kind, "content": content},
        **more,
    }


def claude_call(n: int, call_id: str, tool: str, given: Any) -> dict[str, Any]:
    """The line of a call."""
    block = {"type": "tool_use", "id": call_id, "name": tool, "input": given}
    return claude_line("assistant", [block], n)


def claude_result(
    n: int, call_id: str, content: Any, returned: Any = None, *, is_error: bool | None = None
) -> dict[str, Any]:
    """The line of a result."""
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    if is_error is not None:
        block["is_error"] = is_error
    more = {} if returned is None else {"toolUseResult": returned}
    return claude_line("user", [block], n, **more)


ODD: tuple[Any, ...] = (None, 7, "x", [None], {"x": None})
"""Values that stand where a source should have another one."""


def odd_variants(value: Any) -> Iterator[Any]:
    """The value with one member missing, or with an odd value in its place, for every member."""
    members = object_of(value)
    for name, one in members.items():
        yield {other: members[other] for other in members if other != name}
        yield from ({**members, name: odd} for odd in (*ODD, *odd_variants(one)))
    for at, one in enumerate(list_of(value)):
        for odd in (*ODD, *odd_variants(one)):
            yield [*value[:at], odd, *value[at + 1 :]]


def assert_odd_values_are_imported(folder: Path, lines: Iterable[Any]) -> None:
    """Check that lines with odd values raise nothing, and that what is stored can be read."""
    kept = [*lines]
    lines = [*kept, *ODD, *(odd for one in kept for odd in odd_variants(one))]
    for n, one in enumerate(map(object_of, lines)):
        if isinstance(one.get("uuid"), str):
            one["uuid"] += f"/{n}"  # or it would be the same line of Claude Code again
    path = write_lines(folder / "odd.jsonl", lines)
    numbered = (one.replace("LINE", f"{n}-") for n, one in enumerate(path.read_text().splitlines()))
    path.write_text("\n".join(numbered))
    imported = import_one(folder, path)
    assert imported.damaged == ()
    with open_store(folder / "tooltrail.db") as store:
        assert [one for one in problems_of(store) if "has not ended" not in one] == []
    with opened(folder) as reader:
        for session in reader.sessions():
            for message in reader.conversation(session.id)[1]:
                if message.document:
                    Message.from_json(message.document)
