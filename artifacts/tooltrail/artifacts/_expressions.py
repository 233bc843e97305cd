r"""Regular expressions for lines: refuse newlines, and rewrite expressions to search many lines.

A user writes an expression for one line. A search runs it with MULTILINE on a block of many lines.
The results are equal if no part of the expression can match a newline: `for_blocks` changes `[^"]`
to `[^\n"]`, and `\s` to white space without the newline. Some expressions cannot be changed:
look-around and `\Z` see text beyond the line, and atomic and possessive groups can fail on it.
These are searched line by line.
"""

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

_BLOCK_TOKEN = re.compile(rb"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\\[]+|.", re.DOTALL)
"""An escape, a set, or anything else."""

_REPLACED = {rb"\s": rb"[ \t\r\f\v]", rb"\W": rb"[^\w\n]", rb"\D": rb"[^\d\n]"}

_BEYOND = re.compile(rb"[*+?}]\+|\(\?(?![:P]|[aim]+[:)])|[\x00-\x08\x0a-\x1f]|\t-")
"""Possessive quantifiers; all groups but plain and named ones; control characters."""

_BEYOND_ESCAPE = re.compile(rb"\\[AZzn0-7xuUNvfra\n]")
"""Anchors of the text; character codes, and letters that can begin a range over the newline."""

_BEYOND_SET = re.compile(rb"\\[sWDn0-7xtvfrab\n]|[\x00-\x1f]")
"""Members of a set that can include the newline."""

_NEWLINES = {rb"\n", b"\\\n", rb"\x0a", rb"\x0A", rb"\012", b"\n"}


def compiled(source: bytes, flags: int) -> re.Pattern[bytes]:
    """Compile an expression.

    Raises:
        InvalidRecordError: `source` is not a regular expression.
    """
    try:
        with warnings.catch_warnings():
            # Python warns about sets whose meaning may change; the user cannot act on that.
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(source, flags)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidRecordError(f"not a regular expression: {error}") from error


def refuse_newline(regex: re.Pattern[bytes]) -> None:
    """Refuse an expression that contains a newline, even in an optional part.

    Raises:
        InvalidRecordError: the expression contains a newline.
    """
    is_verbose = regex.flags & re.VERBOSE
    tokens = set((_VERBOSE_TOKEN if is_verbose else _TOKEN).findall(regex.pattern))
    if is_verbose:
        # In a verbose expression a newline is only white space between the parts.
        tokens.discard(b"\n")
    if any(map(_is_newline, tokens)):
        raise InvalidRecordError(
            "a pattern must not contain a newline: each line is searched without its newline"
        )


def _is_newline(token: bytes) -> bool:
    """Whether an escape or a byte is a newline, or a set contains only the newline."""
    if not token.startswith(b"["):
        return token in _NEWLINES
    member = compiled(token, re.DOTALL)
    return [byte for byte in range(256) if member.fullmatch(bytes([byte]))] == [ord("\n")]


def for_blocks(source: bytes) -> bytes | None:
    """The expression that finds in blocks the matches of `source` in lines; None if impossible."""
    tokens: list[bytes] = []
    for token in _BLOCK_TOKEN.findall(source):
        changed = _changed(token)
        if changed is None:
            return None
        tokens.append(changed)
    return b"".join(tokens)


def _changed(token: bytes) -> bytes | None:
    if token in _REPLACED:
        return _REPLACED[token]
    if token.startswith(b"[^"):
        # Directly after `[^\n`, a `]` would close the set and a `-` would begin a range.
        escaped = b"\\" if token[2:3] in b"]-" else b""
        return b"[^\\n" + escaped + token[2:]
    pattern = _BEYOND
    if token.startswith(b"["):
        pattern = _BEYOND_SET
    elif token.startswith(b"\\"):
        pattern = _BEYOND_ESCAPE
    return None if pattern.search(token) else token
