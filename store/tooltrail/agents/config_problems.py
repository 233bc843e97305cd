"""Problems of a configuration file, with their positions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tooltrail.records import InvalidRecordError

Path = tuple[str | int, ...]
"""Keys and list indexes from the root to a part of a document."""

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_$-]+")
_KEY_CHARS = 80
"""Characters of a key that a message shows."""


@dataclass(frozen=True, slots=True, order=True)
class ConfigProblem:
    """One problem of a configuration. Problems sort by position.

    Attributes:
        file: file name as the caller gave it.
        line: line, from 1.
        column: column, from 1, in characters.
        path: part of the document, such as `output.schema.properties.summary.minLenght`; empty for
            the whole document.
        message: the problem, in one sentence.
    """

    file: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        """`FILE:LINE: PATH: MESSAGE`, on one line."""
        about = f"{self.path}: " if self.path else ""
        return f"{self.file}:{self.line}: {about}{self.message}"


class AgentConfigWarning(UserWarning):
    """A part of a configuration is ignored, or no value can satisfy a part of its schema."""


class AgentConfigError(InvalidRecordError):
    """A file is not a valid configuration of an agent.

    Attributes:
        problems: all problems in the order of the file, at least one.
    """

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


def spell_path(path: Path) -> str:
    """A path as text: `tiers[0].model`, `properties["a b"]`."""
    spelled = ""
    for part in path:
        if isinstance(part, int):
            spelled += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            spelled += f".{part}" if spelled else part
        else:
            spelled += f'["{_shown(part)}"]'
    return spelled


def quoted(key: str) -> str:
    """A key in a sentence."""
    return f"`{_shown(key)}`"


def _shown(key: str) -> str:
    """A key without control characters, at most `_KEY_CHARS` long."""
    spelled = key.encode("unicode_escape").decode() if not key.isprintable() else key
    return spelled if len(spelled) <= _KEY_CHARS else spelled[: _KEY_CHARS - 1] + "…"
