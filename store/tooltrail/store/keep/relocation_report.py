"""What became of a relocation."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tooltrail.store.pruning_plan import Amount

_NAMED = 100
"""Paths that the account of a run names; it counts all."""


@dataclass(slots=True)
class RelocationReport:
    """What became of a relocation.

    Attributes:
        run_id: of its row in `maintenance_runs`.
        root_before: the URL from which objects were copied.
        root_after: the URL at which they are now.
        copied: objects that were copied and read back.
        sound: objects that stood at the new root already and were read through.
        damaged: paths of artifacts that are damaged where they were.
        missing: paths of artifacts that are not where they should be.
        switched: whether the store remembers the new root now.
        deleted: objects that were deleted at the old root.
        mark_stays: a sentence that says that and why the mark that the run had put into the new
            root could not be taken back; None when it was, or is to be there.
    """

    run_id: UUID
    root_before: str
    root_after: str
    copied: Amount = field(default_factory=Amount)
    sound: Amount = field(default_factory=Amount)
    damaged: list[str] = field(default_factory=list[str])
    missing: list[str] = field(default_factory=list[str])
    switched: bool = False
    deleted: Amount = field(default_factory=Amount)
    mark_stays: str | None = None

    def summary(self) -> dict[str, Any]:
        """The report as its row says it."""
        return {
            "switched": self.switched,
            "copied_count": self.copied.count,
            "copied_bytes": self.copied.stored_bytes,
            "sound_count": self.sound.count,
            "damaged": self.damaged[:_NAMED],
            "damaged_count": len(self.damaged),
            "missing": self.missing[:_NAMED],
            "missing_count": len(self.missing),
            "deleted_count": self.deleted.count,
            "deleted_bytes": self.deleted.stored_bytes,
            "mark_stays": self.mark_stays,
        }
