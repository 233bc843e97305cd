"""How much a store takes. A limit shortens what is kept of an output; it never stops a record."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """Limits of one store, as one process has them.

    Attributes:
        store_bytes: stored bytes of all artifacts together, and of the output in the spool of this
            machine that is to become some; None for no limit. Content that is an artifact already
            costs nothing. The database is not in it: a call's record and its short streams, up to
            `inline_bytes` of the policy each, are kept whatever the limit. Nor is what is set
            aside while the store is away.
        free_bytes: see `CaptureLimits`.
    """

    store_bytes: int | None = None
    free_bytes: int | None = None
