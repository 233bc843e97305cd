"""Regular expressions as they come from people, who are told why one cannot be searched for."""

import re
import warnings

from tooltrail.records.errors import InvalidRecordError

_TOKEN = re.compile(rb"\\x[0-9a-fA-F]{2}|\\0[0-7]{0,2}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
"""An escape, a set, or one byte."""

_NEWLINES = {rb"\n", b"\\\n", rb"\x0a", rb"\x0A", rb"\012", b"\n"}


def compiled(source: bytes, flags: int) -> re.Pattern[bytes]:
    """Compile an expression.

    Raises:
        InvalidRecordError: it is none.
    """
    try:
        with warnings.catch_warnings():
            # Of sets that may mean more one day; whoever searches can do nothing about it.
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(source, flags)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidRecordError(f"not a regular expression: {error}") from error


def refuse_newline(regex: re.Pattern[bytes]) -> None:
    """Refuse an expression that asks for a newline, which no line holds, outside a set.

    Raises:
        InvalidRecordError: it does.
    """
    found = _NEWLINES.intersection(_TOKEN.findall(regex.pattern))
    if regex.flags & re.VERBOSE:
        # There a newline is a space between the parts.
        found.discard(b"\n")
    if found:
        raise InvalidRecordError(
            "no line holds a newline, so that a pattern with one matches nothing:"
            " ask for lines around a match instead"
        )
