"""What is wrong with a configuration, and where: sentences for whoever wrote the file."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tooltrail.records import InvalidRecordError

Path = tuple[str | int, ...]
"""Keys and positions that lead to a part of a document."""

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_$-]+")
_KEY_CHARS = 80
"""Characters of a key that are repeated."""


@dataclass(frozen=True, slots=True, order=True)
class ConfigProblem:
    """One thing that is wrong with a configuration. Problems are ordered by their places.

    Attributes:
        file: as the caller named it.
        line: from 1.
        column: from 1, in characters.
        path: what it is about, `output.schema.properties.summary.minLenght`; empty for the whole.
        message: what is wrong, in one sentence.
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
    """Part of a configuration that is ignored."""


class AgentConfigError(InvalidRecordError):
    """A file that is no configuration of an agent.

    Attributes:
        problems: everything that is wrong with it, in the order of the file; at least one.
    """

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


def spell_path(path: Path) -> str:
    """A path as people write it: `tiers[0].model`, `properties["a b"]`."""
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
    """A key as a sentence names it."""
    return f"`{_shown(key)}`"


def _shown(key: str) -> str:
    """A key in a message: on one line, and no longer than one."""
    spelled = key.encode("unicode_escape").decode() if not key.isprintable() else key
    return spelled if len(spelled) <= _KEY_CHARS else spelled[: _KEY_CHARS - 1] + "…"
