"""What `verify` reports: one finding for each thing that is not as it was recorded."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

FindingKind = Literal["damage", "incomplete"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be.

    Attributes:
        kind: `damage` where something was altered, removed or added; `incomplete` where something
            is missing and the store says so itself: an open call, an artifact that waits in a
            spool, a fact that could not be applied.
        subject: the thing, in words: `call 0198…`, `session 0198…`, `body sha256:…`.
        table: where it was noticed.
        column: of that table; None where a row as a whole is meant.
        message: one sentence that names the thing.
    """

    kind: FindingKind
    subject: str
    table: str
    column: str | None
    message: str


@dataclass
class Totals:
    """What was compared, and what came of it.

    Attributes:
        checked: how many things of each kind were compared: `calls`, `messages`, …
        damage_count: findings of damage so far.
        incomplete_count: findings of what is incomplete so far.
    """

    checked: Counter[str] = field(default_factory=Counter[str])
    damage_count: int = 0
    incomplete_count: int = 0
