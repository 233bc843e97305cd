"""How a store is opened."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tooltrail.journal.work import Acknowledge
    from tooltrail.records import FamilyRegistry, Policy


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of `open_store`.

    Attributes:
        artifacts: where the artifact root is; None for where the store remembers it.
        policy: the budgets of new records; each family's own by default.
        families: the tool families; all built-in ones by default.
        acknowledge: what a record survives once it is acknowledged.
        strict: whether an acknowledgement that cannot be given is an error.
        free_bytes: what captures leave free on the disk of the spool.
        creates: whether a missing store is created when it is first needed.
    """

    artifacts: str | None = None
    policy: "Policy | None" = None
    families: "FamilyRegistry | None" = None
    acknowledge: "Acknowledge" = "journal"
    strict: bool = False
    free_bytes: int | None = None
    creates: bool = False
