"""Escaping of text beside tags, so that no output can end its own block or begin another.

A backslash goes behind the first character of a tag, one more where there are some already. So the
text stays readable, and taking one backslash away gives it back exactly. Letters of either case are
meant, since models read tags loosely.
"""

import re
from functools import lru_cache

_REFERENCE = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7}));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_SPELLED = {value: f"&{name};" for name, value in _NAMED.items()}
_IN_ATTRIBUTE = re.compile('[&<>"\x00-\x1f\x7f\u0085\u2028\u2029\ud800-\udfff]')
_LAST_CODE = 0x10FFFF


class Escaping:
    """How text stands beside marks of one kind.

    Args:
        before: a pattern of the beginning of a mark, which the backslash goes behind.
        rest: a pattern of what follows it.
    """

    def __init__(self, before: str, rest: str) -> None:
        flags = re.IGNORECASE | re.MULTILINE
        self._any = re.compile(rf"({before})(\\*)({rest})", flags)
        self._escaped = re.compile(rf"({before})(\\+)({rest})", flags)

    def escape(self, text: str, *, everywhere: bool = True) -> str:
        r"""The text without marks; if not `everywhere`, `\` goes to those alone that have one."""
        return (self._any if everywhere else self._escaped).sub(r"\1\\\2\3", text)

    def unescape(self, text: str) -> str:
        """The text that was escaped, in either way."""
        return self._escaped.sub(lambda mark: f"{mark[1]}{mark[2][1:]}{mark[3]}", text)

    def has_marks(self, text: str) -> bool:
        """Whether there is a mark in the text, escaped or not."""
        return self._any.search(text) is not None

    def respell(self, json: str) -> str:
        """A text of JSON that means the same without any tag in its strings."""
        return self._any.sub(lambda mark: f"\\u{ord(mark[1]):04x}{mark[2]}{mark[3]}", json)


THOUGHTS = Escaping("<", "/?think(?:ing)?>")
"""What models think stands between these, in any family."""

FENCES = Escaping("^ {0,3}", "`{3,}|~{3,}")
"""Where code blocks of Markdown begin and end."""


@lru_cache(maxsize=256)
def tags(*names: str) -> Escaping:
    """The beginnings and ends of blocks with these tags."""
    return Escaping("<", f"/?(?:{'|'.join(map(re.escape, names))})")


def body_without(*names: str) -> str:
    """A pattern of all text up to the next tag of these names."""
    return rf"[^<]*+(?:<(?!/?(?:{'|'.join(names)}))[^<]*+)*+"


def escape_attribute(text: str) -> str:
    """The value of an attribute, to stand between double quotes on one line."""
    return _IN_ATTRIBUTE.sub(lambda found: _SPELLED.get(found[0]) or f"&#{ord(found[0])};", text)


def unescape_attribute(text: str) -> str:
    """The value that was escaped. What is no reference of XML stays as it is."""
    return _REFERENCE.sub(_referred, text)


def _referred(reference: re.Match[str]) -> str:
    if reference[1]:
        return _NAMED[reference[1]]
    code = int(reference[2])
    return chr(code) if code <= _LAST_CODE else reference[0]
