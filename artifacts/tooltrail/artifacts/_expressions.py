"""Regular expressions as they come from people, who are told why one cannot be searched for."""

import re
import warnings

from tooltrail.records.errors import InvalidRecordError

_PARTS = (
    rb"\(\?#(?:\\.|[^\\)])*\)"
    rb"|\\x[0-9a-fA-F]{2}|\\0[0-7]{0,2}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|."
)
"""A comment, an escape, a set, or one byte."""

_TOKEN = re.compile(_PARTS, re.DOTALL)
_VERBOSE_TOKEN = re.compile(rb"#(?:\\.|[^\\\n])*|" + _PARTS, re.DOTALL)

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
    """Refuse an expression that asks for a newline in any place, were it in one that may be left.

    Raises:
        InvalidRecordError: it does.
    """
    is_verbose = regex.flags & re.VERBOSE
    tokens = set((_VERBOSE_TOKEN if is_verbose else _TOKEN).findall(regex.pattern))
    if is_verbose:
        # There a newline is a space between the parts.
        tokens.discard(b"\n")
    if any(map(_is_newline, tokens)):
        raise InvalidRecordError(
            "a pattern may not ask for a newline: lines are searched without it"
        )


def _is_newline(token: bytes) -> bool:
    """Whether an escape or a byte is a newline, or a set holds it and nothing else."""
    if not token.startswith(b"["):
        return token in _NEWLINES
    held = compiled(token, re.DOTALL)
    return [byte for byte in range(256) if held.fullmatch(bytes([byte]))] == [ord("\n")]
