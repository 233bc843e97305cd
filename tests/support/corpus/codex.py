"""Codex: rollouts as lines of JSON; the complete form of some results is an event.

Web searches are left out: the provider runs them, and the log contains neither their ids nor their
results.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.corpus.calls import (
    Entry,
    Event,
    RecordedCall,
    documents,
    ended,
    failed,
    interrupted,
    paired,
    stream,
)
from tests.support.corpus.changes import hunks_of, patched_files

from tooltrail.records import (
    ErrorKind,
    FamilyOutput,
    FileChange,
    FileMutationOutput,
    ObservedTask,
    PromotedCommand,
    TaskHandle,
    TaskOutput,
    WorkItem,
    WorkItemOutput,
)

_CALLS = ("function_call", "custom_tool_call", "tool_search_call")
_HEADER = re.compile(
    r"(?:Chunk ID: .*\n)?(?:Exit code: (?P<code>-?\d+)\n)?Wall time: .*\n"
    r"(?:Process exited with code (?P<status>-?\d+)\n)?"
    r"(?:Process running with session ID (?P<session>\d+)\n)?"
    r"(?:Original token count: \d+\n)?(?:Total output lines: \d+\n)?Output:\n"
)
_TASK_KIND = "command_session"


class _Answer(NamedTuple):
    """A result: the text of the tool without its header, and the values of the header."""

    event: Entry
    text: str
    status: int | None = None
    session: str | None = None


def read(path: Path) -> Iterator[RecordedCall]:
    """The calls of a rollout."""
    entries = [e["payload"] for e in documents(path.read_bytes()) if "call_id" in e["payload"]]
    events = {e["call_id"]: e for e in entries if e["type"].endswith("_end")}
    for call, answer in paired(_events(entries)):
        yield _call(call, answer, events.get(call["call_id"], {}))


def _events(entries: list[dict[str, Any]]) -> Iterator[Event]:
    for entry in entries:
        if entry["type"] in _CALLS:
            yield "call", entry["call_id"], entry
        elif entry["type"].endswith("_output"):
            yield "result", entry["call_id"], entry


def _call(call: Entry, answer: Entry | None, event: Entry) -> RecordedCall:
    name = call.get("name", "tool_search")
    arguments = _arguments(call)
    if answer is None:
        return interrupted(name, arguments)
    result = _answer(answer.get("output", answer.get("tools")), event)
    if name == "apply_patch" and result.status != 0:
        kind = None if result.status is None else ErrorKind.PATCH_FAILED
        return failed(name, arguments, result.text, kind)
    return RecordedCall(name, arguments, (result.text,), _typed(name, arguments, result))


def _answer(output: Any, event: Entry) -> _Answer:
    text = output if isinstance(output, str) else json.dumps(output)
    if text.startswith('{"output":'):
        document = json.loads(text)
        return _Answer(event, document["output"], document["metadata"]["exit_code"])
    header = _HEADER.match(text)
    if header is None:
        return _Answer(event, text)
    code = header["code"] or header["status"]
    status = None if code is None else int(code)
    return _Answer(event, text[header.end() :], status, header["session"])


def _arguments(call: Entry) -> Any:
    arguments = call.get("arguments", call.get("input"))
    if call["type"] == "function_call":
        return json.loads(arguments)
    return arguments


def _typed(name: str, arguments: Any, answer: _Answer) -> FamilyOutput | None:
    match name:
        case "exec_command" | "shell_command":
            return _command(arguments, answer)
        case "write_stdin":
            return _task_output(arguments, answer)
        case "apply_patch":
            return FileMutationOutput(changed_files=_changes(arguments, answer.event))
        case "update_plan":
            return _plan(arguments)
        case _:
            return None


def _command(arguments: Entry, answer: _Answer) -> FamilyOutput | None:
    command = arguments.get("cmd", arguments.get("command"))
    cwd = arguments.get("workdir")
    if answer.session is not None:
        return PromotedCommand(
            command=command,
            cwd=cwd,
            task_handle=TaskHandle(task_id=answer.session, kind=_TASK_KIND, status="running"),
            initial_output=stream("initial_output", answer.text),
        )
    output = answer.event.get("aggregated_output", answer.text)
    return ended(answer.event.get("exit_code", answer.status), output, command, cwd)


def _task_output(arguments: Entry, answer: _Answer) -> TaskOutput:
    task = ObservedTask(
        task_id=str(arguments["session_id"]),
        kind=_TASK_KIND,
        status="running" if answer.status is None else "completed",
        exit_status=answer.status,
        output=stream("output", answer.text),
    )
    return TaskOutput(retrieval_status="success", task=task)


def _changes(patch: str, event: Entry) -> tuple[FileChange, ...]:
    if "changes" not in event:
        return patched_files(patch)
    return tuple(_change(n, *item) for n, item in enumerate(event["changes"].items()))


def _change(n: int, path: str, change: Entry) -> FileChange:
    if change["type"] != "update":
        return FileChange(action=change["type"], path=path)
    diff, target = change["unified_diff"], change["move_path"]
    return FileChange(
        action="move" if target else "modify",
        path=target or path,
        from_path=path if target else None,
        hunks=hunks_of(diff),
        diff=stream(f"diff.{n}", diff),
    )


def _plan(arguments: Entry) -> WorkItemOutput:
    items = tuple(
        WorkItem(work_item_id=str(n), title=step["step"], status=step["status"])
        for n, step in enumerate(arguments["plan"], 1)
    )
    return WorkItemOutput(action="updated", items=items)
