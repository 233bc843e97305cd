"""What lies in a spool, besides what it remembers of the stores that were opened with it."""

from pathlib import Path

_REMEMBERED = "known-stores"


def names_in(spool: Path) -> list[str]:
    """All names in order, those of its owners too."""
    return sorted(path.name for path in spool.iterdir() if path.name != _REMEMBERED)


def left_in(spool: Path) -> list[str]:
    """The same without owners, which live as long as their programs, and outboxes, which stay."""
    return [name for name in names_in(spool) if not name.startswith(("owner-", "outbox-"))]


def captured_in(spool: Path) -> list[str]:
    """Names of the folders with output that is being captured."""
    return sorted(one.name for one in spool.glob("????????-????-*") if one.is_dir())
