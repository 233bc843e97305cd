"""SWE-agent: trajectories, whose steps are lines for one shell and the output of the shell.

The commands of SWE-agent are tools; other lines are calls of `bash`. The log has no exit status. An
edit prints a part of the file, which is not part of the result for a changed file.
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from tests.support.corpus.calls import Entry, RecordedCall, ended, failed, stream

from tooltrail.records import FamilyOutput, FileReadOutput, LineRange, SearchOutput

_OWN = frozenset(
    {"open", "goto", "scroll_up", "scroll_down", "create", "edit", "insert", "set_cursors"}
    | {"find_file", "search_dir", "search_file", "submit"}
)
_OPENING = frozenset({"open", "goto", "scroll_up", "scroll_down"})
_FINDING = frozenset({"find_file", "search_dir", "search_file"})
_FILE = re.compile(r"\[File: (.+) \((\d+) lines total\)\]\r?\n")
_NUMBERED = re.compile(r"^(\d+):(.*(?:\n|\Z))", re.MULTILINE)
_FOUND = re.compile(r"Found (\d+) matches for .*\n")
_PROMPT = re.compile(r"\n\(Open file: .*\)\n\(Current directory: .*\)\nbash-\$\Z")


def read(path: Path) -> Iterator[RecordedCall]:
    """The steps of a trajectory."""
    document = json.loads(path.read_bytes())
    steps = document["trajectory"] if "trajectory" in document else _steps(document["history"])
    for step in steps:
        action, output = step["action"], step["observation"] or ""
        first = action.split(maxsplit=1)[0]
        name = first if first in _OWN else "bash"
        if output.startswith("Your proposed edit has introduced"):
            yield failed(name, {"command": action}, output)
        else:
            typed = ended(None, output, action) if name == "bash" else _typed(name, output)
            yield RecordedCall(name, {"command": action}, (output,), typed)


def _steps(history: list[Entry]) -> Iterator[Mapping[str, str]]:
    """The steps of a demonstration, which has only a history."""
    for message, answer in pairwise(history):
        if "action" in message and answer["role"] == "tool":
            output = _PROMPT.sub("", answer["content"])
            yield {"action": message["action"], "observation": output}


def _typed(name: str, output: str) -> FamilyOutput | None:
    header = _FILE.match(output)
    if name in _OPENING and header is not None:
        return _read(header[1], int(header[2]), output[header.end() :])
    found = _FOUND.match(output)
    if name in _FINDING and found is not None:
        matches = stream("matches", output[found.end() :])
        return SearchOutput(match_count=int(found[1]), returned=int(found[1]), matches=matches)
    return None


def _read(path: str, total: int, window: str) -> FileReadOutput | None:
    lines = _NUMBERED.findall(window)
    if not lines:
        return None
    start, end = int(lines[0][0]), int(lines[-1][0])
    return FileReadOutput(
        path=path,
        content=stream("content", "".join(text for _, text in lines)),
        line_range=None if end - start + 1 == total else LineRange(start=start, end=end),
    )
