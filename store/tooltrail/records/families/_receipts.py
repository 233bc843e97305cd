"""How receipts are put together: sections apart, labels on one line, artifacts at the end."""

import re
from collections.abc import Iterable, Mapping, Sequence

from tooltrail.records._acting_chars import ACTING
from tooltrail.records.envelope import ArtifactReference

_BREAKS = re.compile(rf"[\s\x00-\x1f{ACTING}]+")
"""White space, and characters that could move a cursor or turn the direction of what follows."""


def one_line(text: str) -> str:
    """A label that cannot pass for another line of a receipt; never longer than `text`."""
    return _BREAKS.sub(" ", text).strip()


def joined(sections: Iterable[str]) -> str:
    """The sections of a receipt with an empty line between them."""
    return "\n".join(s if s.endswith("\n") else s + "\n" for s in sections)


def artifact_lines(
    artifacts: Iterable[ArtifactReference], roles: Mapping[int | None, str]
) -> list[str]:
    """A line `PATH (ROLE)` for each artifact; `roles` is by index."""
    return [f"{a.path} ({roles.get(n, 'artifact')})" for n, a in enumerate(artifacts)]


def hidden_lines(
    count: int,
    noun: str,
    artifacts: Sequence[ArtifactReference] | None,
    index: int | None,
    detail: str = "",
) -> list[str]:
    """The line that says how many entries of a list are not shown; none when all are.

    Args:
        count: entries that are not shown.
        noun: what one of them is called.
        artifacts: of the result.
        index: of the list that names them, see `Cutter.hidden_list`.
        detail: what is known of them.
    """
    if count <= 0:
        return []
    which = f"{noun} is" if count == 1 else f"{noun}s are"
    detail = detail and f": {detail}"
    where = "" if artifacts is None or index is None else f"; listed in {artifacts[index].path}"
    return [f"[{count:,} further {which} not shown{detail}{where}]"]


def artifact_section(lines: Iterable[str]) -> list[str]:
    """The last section of a receipt, or none when there is no artifact."""
    text = "\n".join(lines)
    return [f"Artifacts:\n{text}"] if text else []
