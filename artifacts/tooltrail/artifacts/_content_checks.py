"""What the name of an artifact, and its row, promise of its content."""

from tooltrail.artifacts.paths import digest_of_path
from tooltrail.records.digests import hex_of
from tooltrail.records.errors import DigestMismatchError


def check_digest(path: str, digits: str) -> None:
    """Compare the digest of a whole content, as hex digits, with the one in its path.

    Raises:
        DigestMismatchError: they differ.
    """
    if digits != hex_of(digest_of_path(path)):
        raise DigestMismatchError(
            f"artifact {path} is damaged: its content has another digest than its name", path=path
        )


def check_size(path: str, found: int, stored: int | None) -> None:
    """Compare the plain bytes of an artifact with those that were stored; None is not known.

    Raises:
        DigestMismatchError: they differ.
    """
    if stored is not None and found != stored:
        raise DigestMismatchError(
            f"artifact {path} is damaged: it holds {found:,} bytes, and {stored:,} were stored",
            path=path,
        )
