"""Claude Code: sessions as lines of JSON; each result has a text and a structured form.

The text of a failed command begins with its exit code. A command that did not fail exited with 0,
or with 1 if the log contains an interpretation of that code.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.corpus.calls import (
    Entry,
    Event,
    RecordedCall,
    as_list,
    as_object,
    documents,
    ended,
    failed,
    interrupted,
    paired,
    stream,
)
from tests.support.corpus.changes import hunks_of, unified

from tooltrail.records import (
    ChildAgentOutput,
    CommandOutput,
    FamilyOutput,
    FileChange,
    FileMutationOutput,
    FileReadOutput,
    LineRange,
    ObservedTask,
    SearchOutput,
    StreamRecord,
    TaskHandle,
    TaskOutput,
    TokenUsage,
    WorkItem,
    WorkItemOutput,
    count_lines,
)

_EXIT_CODE = re.compile(r"Exit code (\d+)(?:\n|\Z)")
_TAGS = re.compile(r"</?tool_use_error>")
_CONTEXT = ("-A", "-B", "-C", "context")


def read(path: Path) -> Iterator[RecordedCall]:
    """The calls of a session."""
    for use, answer in paired(_events(path.read_bytes())):
        yield _call(use, answer)


def _events(data: bytes) -> Iterator[Event]:
    for entry in documents(data):
        message = as_object(entry.get("message")) or {}
        for block in as_list(message.get("content")):
            if block.get("type") == "tool_use":
                yield "call", block["id"], block
            elif block.get("type") == "tool_result":
                structured = entry.get("toolUseResult")
                yield "result", block["tool_use_id"], {**block, "structured": structured}


def _call(use: Entry, answer: Entry | None) -> RecordedCall:
    name, arguments = use["name"], use["input"]
    if answer is None:
        return interrupted(name, arguments)
    texts = _texts(answer.get("content"))
    if answer.get("is_error"):
        return _failure(name, arguments, "\n".join(texts))
    structured, typed = as_object(answer["structured"]), None
    if name in _TYPES and structured is not None:
        typed = _TYPES[name](arguments, structured)
    return RecordedCall(name, arguments, texts, typed)


def _texts(content: Any) -> tuple[str, ...]:
    if isinstance(content, str):
        return (content,)
    return tuple(block["text"] for block in content or () if block["type"] == "text")


def _failure(name: str, arguments: Entry, text: str) -> RecordedCall:
    code = _EXIT_CODE.match(text)
    if code is None:
        return failed(name, arguments, _TAGS.sub("", text))
    typed = ended(int(code[1]), text[code.end() :], arguments["command"])
    return RecordedCall(name, arguments, (text,), typed)


def _command(arguments: Entry, result: Entry) -> CommandOutput:
    return CommandOutput(
        command=arguments["command"],
        exit_status=1 if result.get("returnCodeInterpretation") else 0,
        stdout=_stdout(result["stdout"], result.get("persistedOutputSize", 0)),
        stderr=stream("stderr", result["stderr"]),
    )


def _stdout(text: str, produced: int) -> StreamRecord:
    kept = stream("stdout", text)
    if produced <= kept.size:
        return kept
    loss = {"produced_size": produced, "loss_reason": "the rest was spilled to a file"}
    return kept.model_copy(update=loss)


def _read(arguments: Entry, result: Entry) -> FileReadOutput | None:
    file = result["file"]
    if result["type"] != "text":
        return None
    lines = None
    if 0 < file["numLines"] < file["totalLines"]:
        lines = LineRange(start=file["startLine"], end=file["startLine"] + file["numLines"] - 1)
    content = stream("content", file["content"])
    return FileReadOutput(path=arguments["file_path"], content=content, line_range=lines)


def _mutation(arguments: Entry, result: Entry) -> FileMutationOutput:
    path, patch = arguments["file_path"], result["structuredPatch"]
    change = FileChange(
        action="add" if result.get("type") == "create" else "modify",
        path=path,
        hunks=hunks_of(unified(path, patch)),
        diff=stream("diff.0", unified(path, patch)) if patch else None,
    )
    return FileMutationOutput(changed_files=(change,))


def _search(arguments: Entry, result: Entry) -> SearchOutput | None:
    if result.get("truncated") or any(arguments.get(name) for name in _CONTEXT):
        return None  # the matches cannot be counted
    text = result.get("content")
    if text is None:
        text = "".join(f"{name}\n" for name in result["filenames"])
    count = count_lines(text.encode())
    return SearchOutput(match_count=count, returned=count, matches=stream("matches", text))


def _task_output(_arguments: Entry, result: Entry) -> TaskOutput:
    task = result["task"]
    observed = ObservedTask(
        task_id=task["task_id"],
        kind=task["task_type"],
        status=task["status"],
        summary=task["description"],
        output=stream("output", task["output"]),
    )
    return TaskOutput(retrieval_status=result["retrieval_status"], task=observed)


def _agent(_arguments: Entry, result: Entry) -> ChildAgentOutput:
    agent_id = result["agentId"]
    if result.get("isAsync"):
        handle = TaskHandle(task_id=agent_id, kind="local_agent", status="running")
        return ChildAgentOutput(agent_id=agent_id, status="running", task_handle=handle)
    usage = result["usage"]
    return ChildAgentOutput(
        agent_id=agent_id,
        status="completed",
        report=stream("report", "\n".join(_texts(result["content"]))),
        token_usage=TokenUsage(
            input_tokens=usage["input_tokens"],
            output_tokens=usage["output_tokens"],
            cache_read_tokens=usage["cache_read_input_tokens"],
            cache_write_tokens=usage["cache_creation_input_tokens"],
        ),
    )


def _todos(_arguments: Entry, result: Entry) -> WorkItemOutput:
    items = tuple(
        WorkItem(work_item_id=str(n), title=todo["content"], status=todo["status"])
        for n, todo in enumerate(result["newTodos"], 1)
    )
    return WorkItemOutput(action="updated", items=items)


_TYPES: dict[str, Callable[[Entry, Entry], FamilyOutput | None]] = {
    "Bash": _command,
    "Read": _read,
    "Edit": _mutation,
    "Write": _mutation,
    "Grep": _search,
    "Glob": _search,
    "TaskOutput": _task_output,
    "Task": _agent,
    "TodoWrite": _todos,
}
