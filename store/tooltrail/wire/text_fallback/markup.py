"""Escapes text between tags, so that no output can end its own block or begin another.

A backslash is inserted after the first character of a tag, in addition to any that are there. The
text stays readable, and removing one backslash restores it exactly. Tags match in either case,
because models read tags loosely.
"""

import re
from functools import lru_cache

_REFERENCE = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7}));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_SPELLED = {value: f"&{name};" for name, value in _NAMED.items()}
_IN_ATTRIBUTE = re.compile('[&<>"\x00-\x1f\x7f\u0085\u2028\u2029\ud800-\udfff]')
_LAST_CODE = 0x10FFFF


class Escaping:
    """Escapes marks of one kind in text.

    Args:
        before: the pattern of the beginning of a mark; the backslash is inserted after it.
        rest: the pattern of the rest of the mark.
    """

    def __init__(self, before: str, rest: str) -> None:
        flags = re.IGNORECASE | re.MULTILINE
        self._any = re.compile(rf"({before})(\\*)({rest})", flags)
        self._escaped = re.compile(rf"({before})(\\+)({rest})", flags)

    def escape(self, text: str, *, everywhere: bool = True) -> str:
        r"""Escape all marks in the text; if not `everywhere`, only marks that already have `\`."""
        return (self._any if everywhere else self._escaped).sub(r"\1\\\2\3", text)

    def unescape(self, text: str) -> str:
        """Restore a text that was escaped in either way."""
        return self._escaped.sub(lambda mark: f"{mark[1]}{mark[2][1:]}{mark[3]}", text)

    def has_marks(self, text: str) -> bool:
        """Whether the text contains a mark, escaped or not."""
        return self._any.search(text) is not None

    def respell(self, json: str) -> str:
        """Rewrite JSON text so that it has the same value but no tag in its strings."""
        return self._any.sub(lambda mark: f"\\u{ord(mark[1]):04x}{mark[2]}{mark[3]}", json)


THOUGHTS = Escaping("<", "/?think(?:ing)?>")
"""The tags around a model's reasoning, in any family."""

FENCES = Escaping("^ {0,3}", "`{3,}|~{3,}")
"""The lines that begin and end code blocks of Markdown."""


@lru_cache(maxsize=256)
def tags(*names: str) -> Escaping:
    """The escaping of start and end tags with these names."""
    return Escaping("<", f"/?(?:{'|'.join(map(re.escape, names))})")


def body_without(*names: str) -> str:
    """The pattern of all text up to the next tag with one of these names."""
    return rf"[^<]*+(?:<(?!/?(?:{'|'.join(names)}))[^<]*+)*+"


def escape_attribute(text: str) -> str:
    """Escape the value of an attribute, for use between double quotes on one line."""
    return _IN_ATTRIBUTE.sub(lambda found: _SPELLED.get(found[0]) or f"&#{ord(found[0])};", text)


def unescape_attribute(text: str) -> str:
    """Restore an escaped value. Text that is not an XML reference is unchanged."""
    return _REFERENCE.sub(_referred, text)


def _referred(reference: re.Match[str]) -> str:
    if reference[1]:
        return _NAMED[reference[1]]
    code = int(reference[2])
    return chr(code) if code <= _LAST_CODE else reference[0]
