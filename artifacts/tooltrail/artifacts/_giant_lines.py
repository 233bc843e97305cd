"""How long a line may be that is held whole while lines are searched or counted."""

from tooltrail.records.errors import InvalidRecordError

LINE_BYTES = 64 * 1024 * 1024
"""Longest line that is searched: it is held whole, twice."""


def refuse_giant(size: int, line: int, path: str) -> None:
    """Refuse to hold more than `LINE_BYTES` of the line with this number, from 1.

    Raises:
        InvalidRecordError: it has more.
    """
    if size > LINE_BYTES:
        raise InvalidRecordError(
            f"line {line:,} of artifact {path} has more than {LINE_BYTES:,} bytes,"
            " which is too long to be searched"
        )
