"""Changes of files as logs describe them: hunks of unified diffs, and patches of `apply_patch`."""

import re
from collections.abc import Iterable

from tests.support.corpus.calls import Entry

from tooltrail.records import FileChange, Hunk

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_HEADER = re.compile(
    r"^\*\*\* (?P<action>Add|Update|Delete) File: (?P<path>.+)\n"
    r"(?:\*\*\* Move to: (?P<target>.+)\n)?",
    re.MULTILINE,
)


def unified(path: str, patch: Iterable[Entry]) -> str:
    """The unified diff of a file, from a list of hunks with their lines."""
    text = f"--- {path}\n+++ {path}\n"
    for hunk in patch:
        old, new = (f"{hunk[f'{side}Start']},{hunk[f'{side}Lines']}" for side in ("old", "new"))
        text += "\n".join([f"@@ -{old} +{new} @@", *hunk["lines"], ""])
    return text


def hunks_of(diff: str) -> tuple[Hunk, ...]:
    """The hunks of a unified diff."""
    numbers = ([int(n or 1) for n in match.groups()] for match in _HUNK.finditer(diff))
    return tuple(Hunk(old_start=a, old_lines=b, new_start=c, new_lines=d) for a, b, c, d in numbers)


def patched_files(patch: str) -> tuple[FileChange, ...]:
    """The files that a patch of `apply_patch` names, without diffs: it is not a unified diff."""
    return tuple(map(_patched, _HEADER.finditer(patch)))


def _patched(match: re.Match[str]) -> FileChange:
    path, target = match["path"], match["target"]
    if target is not None:
        return FileChange(action="move", path=target, from_path=path)
    if match["action"] == "Add":
        return FileChange(action="add", path=path)
    return FileChange(action="delete" if match["action"] == "Delete" else "modify", path=path)
