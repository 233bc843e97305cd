"""OpenCode: a session as one JSON document; its tool parts contain call and result."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.corpus.calls import Entry, RecordedCall, ended, failed, interrupted, stream
from tests.support.corpus.changes import hunks_of

from tooltrail.records import (
    FamilyOutput,
    FileChange,
    FileMutationOutput,
    FileReadOutput,
    LineRange,
    SearchOutput,
    WorkItem,
    WorkItemOutput,
)

_NUMBERED = re.compile(r"^(\d+): (.*\n)", re.MULTILINE)
_ACTIONS = {"add": "add", "update": "modify", "delete": "delete"}


def read(path: Path) -> Iterator[RecordedCall]:
    """The calls of a session."""
    for message in json.loads(path.read_bytes())["messages"]:
        for part in message["parts"]:
            if part["type"] == "tool":
                yield _call(part["tool"], part["state"])


def _call(name: str, state: Entry) -> RecordedCall:
    arguments = state["input"]
    if state["status"] == "error":
        return failed(name, arguments, state["error"])
    if state["status"] != "completed":
        return interrupted(name, arguments)
    return RecordedCall(name, arguments, (state["output"],), _typed(name, state))


def _typed(name: str, state: Entry) -> FamilyOutput | None:
    arguments, output, metadata = state["input"], state["output"], state["metadata"]
    match name:
        case "bash":
            command, cwd = arguments["command"], arguments.get("workdir")
            return ended(metadata["exit"], metadata["output"], command, cwd)
        case "read":
            return _read(arguments["filePath"], output)
        case "edit" | "write" | "apply_patch":
            return _mutation(arguments, metadata)
        case "grep" | "glob":
            return _search(output, metadata)
        case "todowrite":
            return _todos(metadata["todos"])
        case _:
            return None


def _read(path: str, output: str) -> FileReadOutput | None:
    if "<type>file</type>" not in output:
        return None  # a folder
    body = output.partition("<content>")[2]
    lines = _NUMBERED.findall(body)
    content = stream("content", "".join(text for _, text in lines))
    shown = None
    if lines and not ("\n(End of file" in body and lines[0][0] == "1"):
        shown = LineRange(start=int(lines[0][0]), end=int(lines[-1][0]))
    return FileReadOutput(path=path, content=content, line_range=shown)


def _mutation(arguments: Entry, metadata: Entry) -> FileMutationOutput:
    if "files" in metadata:
        files = enumerate(metadata["files"])
        changes = tuple(
            _change(n, file["filePath"], _ACTIONS[file["type"]], file["patch"]) for n, file in files
        )
    else:
        action = "modify" if metadata.get("exists", True) else "add"
        changes = (_change(0, arguments["filePath"], action, metadata.get("diff")),)
    return FileMutationOutput(changed_files=changes, diagnostics=tuple(_diagnostics(metadata)))


def _change(n: int, path: str, action: str, diff: str | None) -> FileChange:
    fields = {"action": action, "path": path, "hunks": hunks_of(diff or "")}
    return FileChange.model_validate({**fields, "diff": diff and stream(f"diff.{n}", diff)})


def _diagnostics(metadata: Entry) -> Iterator[str]:
    for path, findings in metadata["diagnostics"].items():
        for finding in findings:
            yield f"{path}:{finding['range']['start']['line'] + 1}: {finding['message']}"


def _search(output: str, metadata: Entry) -> SearchOutput | None:
    count = metadata.get("matches", metadata.get("count"))
    if metadata["truncated"]:
        return None  # the number of matches is unknown
    first, _, rest = output.partition("\n")
    text = rest if first.startswith("Found ") else output
    matches = stream("matches", text if count else "")
    return SearchOutput(match_count=count, returned=count, matches=matches)


def _todos(todos: list[Entry]) -> WorkItemOutput:
    items = tuple(
        WorkItem(work_item_id=str(n), title=todo["content"], status=todo["status"])
        for n, todo in enumerate(todos, 1)
    )
    return WorkItemOutput(action="updated", items=items)
