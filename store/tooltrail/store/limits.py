"""What a store leaves free. A limit shortens what is kept of an output; it never stops a record."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """Limits of one store, as one process has them.

    Attributes:
        free_bytes: see `CaptureLimits`.
    """

    free_bytes: int | None = None
