"""The content of a spool."""

from pathlib import Path


def names_in(spool: Path) -> list[str]:
    """All names in the spool, in order."""
    return sorted(path.name for path in spool.iterdir())


def left_in(spool: Path) -> list[str]:
    """All names in the spool except the journal and the owner locks."""
    return [name for name in names_in(spool) if name not in ("journal", "owners")]


def captured_in(spool: Path) -> list[str]:
    """Names of the folders with output that is being captured."""
    return sorted(one.name for one in spool.glob("????????-????-*") if one.is_dir())
