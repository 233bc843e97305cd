"""Escaping of text beside marks, so that no output can end its own block or begin another.

A backslash goes behind the first character of a mark, one more where there are some already; so the
text stays readable, and taking one backslash away gives it back exactly. Letters of either case are
meant, since models read tags loosely.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

_REFERENCE = re.compile(r"&(?:(?P<name>amp|lt|gt|quot|apos)|#(?P<code>[0-9]{1,7}));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_ATTRIBUTE = re.compile('[&<>"\x00-\x1f\x7f\u0085\u2028\u2029\ud800-\udfff]')
_SPELLED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
_LAST_CODE = 0x10FFFF


class Escaping:
    """How text stands beside marks of one kind.

    Args:
        first: the first character of each mark.
        rest: a pattern of what follows it, which does not have that character.
    """

    def __init__(self, first: str, rest: str) -> None:
        self._first = first
        opening = re.escape(first)
        self._plain = re.compile(rf"{opening}(\\*)({rest})", re.IGNORECASE)
        self._escaped = re.compile(rf"{opening}\\(\\*)({rest})", re.IGNORECASE)

    def escape(self, text: str) -> str:
        """The text without any mark in it."""
        return self._plain.sub(lambda mark: f"{self._first}\\{mark[1]}{mark[2]}", text)

    def unescape(self, text: str) -> str:
        """The text that was escaped."""
        return self._escaped.sub(lambda mark: f"{self._first}{mark[1]}{mark[2]}", text)

    def marks(self, text: str) -> bool:
        """Whether there is a mark in the text, escaped or not."""
        return self._plain.search(text) is not None

    def respelled(self, json: str) -> str:
        """A text of JSON that means the same without any mark in its strings."""
        return self._plain.sub(lambda mark: f"\\u{ord(self._first):04x}{mark[1]}{mark[2]}", json)


class LineEscaping:
    """How text stands beside marks that mean something at the beginning of a line alone.

    They are common in texts and seldom in the way, so an exporter escapes them only where it must.
    What looks escaped already is escaped in any case, so that reading need not know which it was.

    Args:
        mark: a pattern of the beginning of such a line, without spaces in front.
    """

    def __init__(self, mark: str) -> None:
        self._any = re.compile(rf"^( {{0,3}})(\\*)({mark})", re.MULTILINE)
        self._escaped = re.compile(rf"^( {{0,3}})\\(\\*)({mark})", re.MULTILINE)

    def escape(self, text: str, *, everywhere: bool) -> str:
        """The text, its escaped marks or all of them escaped once more."""
        pattern = self._any if everywhere else self._escaped
        kept = "" if everywhere else "\\"
        return pattern.sub(lambda mark: f"{mark[1]}\\{kept}{mark[2]}{mark[3]}", text)

    def unescape(self, text: str) -> str:
        """The text that was escaped, in either way."""
        return self._escaped.sub(r"\1\2\3", text)

    def marks(self, text: str) -> bool:
        """Whether there is a mark in the text, escaped or not."""
        return self._any.search(text) is not None


THOUGHTS = Escaping("<", r"/?think(?:ing)?>")
"""What models think stands between these, in any family."""

FENCES = LineEscaping(r"`{3,}|~{3,}")
"""Where code blocks of Markdown begin and end."""


@lru_cache(maxsize=256)
def tags(*names: str) -> Escaping:
    """The beginnings and ends of blocks with these tags."""
    return Escaping("<", f"/?(?:{'|'.join(map(re.escape, names))})")


def blocks(
    text: str, begin: re.Pattern[str], mark: re.Pattern[str], end: re.Pattern[str]
) -> Iterator[tuple[re.Match[str], str, int]]:
    """The blocks of a text: how each begins, what it holds, and where it ends.

    Args:
        text: with anything between the blocks.
        begin: of a block.
        mark: what no block can hold; a block that has another one before its end is none.
        end: of a block, which is such a mark.
    """
    place = 0
    while first := begin.search(text, place):
        following = mark.search(text, first.end())
        if following is None:
            return
        last = end.match(text, following.start())
        if last is None:
            place = following.start()
            continue
        place = last.end()
        yield first, text[first.end() : last.start()], place


def body_in(text: str) -> str:
    """What stands between two tags, without the line ends beside them."""
    return text.removeprefix("\n").removesuffix("\n")


def escape_attribute(text: str) -> str:
    """The value of an attribute, to stand between double quotes on one line."""
    return _ATTRIBUTE.sub(lambda found: _SPELLED.get(found[0]) or f"&#{ord(found[0])};", text)


def unescape_attribute(text: str) -> str:
    """The value that was escaped. What is no reference of XML stays as it is."""
    return _REFERENCE.sub(_referred, text)


def _referred(reference: re.Match[str]) -> str:
    if reference["name"]:
        return _NAMED[reference["name"]]
    code = int(reference["code"])
    return chr(code) if code <= _LAST_CODE else reference[0]
