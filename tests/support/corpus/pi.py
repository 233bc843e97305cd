"""pi: sessions as lines of JSON, with one message for each result of a tool."""

import re
from collections.abc import Iterator
from pathlib import Path

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

from tooltrail.records import (
    FamilyOutput,
    FileChange,
    FileMutationOutput,
    FileReadOutput,
    LineRange,
    count_lines,
)

_EXITED = re.compile(r"(?:\n\n)?Command exited with code (\d+)\Z")
_REST = re.compile(r"\n\n\[\d+ more lines in file\. Use offset=(\d+) to continue\.\]\Z")


def read(path: Path) -> Iterator[RecordedCall]:
    """The calls of a session."""
    for call, answer in paired(_events(path.read_bytes())):
        yield _call(call["name"], call["arguments"], answer)


def _events(data: bytes) -> Iterator[Event]:
    for entry in documents(data):
        message = entry.get("message", {})
        if message.get("role") == "toolResult":
            yield "result", message["toolCallId"], message
        elif message.get("role") == "assistant":
            for block in message["content"]:
                if block["type"] == "toolCall":
                    yield "call", block["id"], block


def _call(name: str, arguments: Entry, answer: Entry | None) -> RecordedCall:
    if answer is None:
        return interrupted(name, arguments)
    text = "\n".join(block["text"] for block in answer["content"] if block["type"] == "text")
    if not answer["isError"]:
        return RecordedCall(name, arguments, (text,), _typed(name, arguments, text))
    exited = _EXITED.search(text)
    if name != "bash" or exited is None:
        return failed(name, arguments, text)
    typed = ended(int(exited[1]), text[: exited.start()], arguments["command"])
    return RecordedCall(name, arguments, (text,), typed)


def _typed(name: str, arguments: Entry, text: str) -> FamilyOutput | None:
    match name:
        case "bash":
            return ended(0, "" if text == "(no output)" else text, arguments["command"])
        case "read":
            return _read(arguments, text)
        case "edit":
            # Its diff has line numbers instead of hunks, so it is not a unified diff.
            change = FileChange(action="modify", path=arguments["path"])
            return FileMutationOutput(changed_files=(change,))
        case _:
            return None  # `write` does not report whether the file existed


def _read(arguments: Entry, text: str) -> FileReadOutput:
    rest = _REST.search(text)
    body = text if rest is None else text[: rest.start()]
    content = stream("content", body)
    start = arguments.get("offset", 1)
    lines = None
    if rest is not None:
        lines = LineRange(start=start, end=int(rest[1]) - 1)
    elif start > 1:
        lines = LineRange(start=start, end=start + max(count_lines(body.encode()), 1) - 1)
    return FileReadOutput(path=arguments["path"], content=content, line_range=lines)
