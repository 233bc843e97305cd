"""Words: how a text is split for the index, and how a query finds its words in a text.

A word is a run of letters and digits. Case is ignored, and so are the two ways to compose letters
such as `é`. Everything else separates words, so `foo_bar`, `--flag` and `/usr/lib` are two, one and
two words. In scripts without spaces between words, each character is a word.

The index says which texts have all the words of a query. Only the text itself says whether they
stand there as typed: `Phrase.find` decides.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from unicodedata import category, normalize

from tooltrail.records.errors import InvalidRecordError

CUT: Final = 64
"""Longest word in the index, in characters. Of a longer word, the index has the beginning."""

_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u30ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Scripts without spaces: Thai, Lao, Burmese, Khmer, Chinese, Japanese."""

_LETTER: Final = rf"[^\W_{_UNSPACED}]"
_WORD: Final = re.compile(rf"[{_UNSPACED}]|{_LETTER}+")
_ENDS_IN_LETTER: Final = re.compile(rf"{_LETTER}\Z")
_BEGINS_WITH_LETTER: Final = re.compile(_LETTER)

_ASCII: Final = bytes(
    code + 32 if chr(code).isupper() else code if chr(code).isalnum() else 32 for code in range(128)
).ljust(256)
"""Maps ASCII letters to small letters, and other bytes than letters and digits to spaces."""


_ASCII_BYTES: Final = bytes(range(128))
_BEYOND_TO_SPACE: Final = _ASCII_BYTES.ljust(256)


def words_of(text: str) -> set[str]:
    """The different words of a text, as the index has them."""
    if text.isascii():
        found = text.encode().translate(_ASCII).decode().split()
    else:
        found = _WORD.findall(fold(text))
    return {word[:CUT] for word in found}


def ascii_words(text: str) -> str | None:
    """A text of ASCII with the same words; None if there are letters beyond ASCII.

    Much text has a dash or a tick beyond ASCII, and no such letter.
    """
    if text.isascii():
        return text
    data = text.encode("utf-8", "replace")
    beyond = set(data.translate(None, _ASCII_BYTES).decode())
    if any(char.isalnum() or category(char).startswith("M") for char in beyond):
        return None
    return data.translate(_BEYOND_TO_SPACE).decode()


def fold(text: str) -> str:
    """A text in which letters that count as equal are equal."""
    return text.lower() if text.isascii() else normalize("NFC", normalize("NFC", text).casefold())


@dataclass(frozen=True)
class Phrase:
    """What one argument of a query asks for: a word, or several that follow each other.

    Attributes:
        text: the text as typed, without quotes and without `*`.
        is_prefix: whether the last word may go on.
    """

    text: str
    is_prefix: bool

    @cached_property
    def words(self) -> list[tuple[str, bool]]:
        """Words of the index that a matching text has, each with whether it may go on there."""
        found = _WORD.findall(fold(self.text))
        last = len(found) - 1
        return [
            (word[:CUT], len(word) >= CUT or (n == last and self._goes_on))
            for n, word in enumerate(found)
        ]

    def find(self, text: str) -> tuple[int, int] | None:
        """The first place of the phrase in a text, as offsets in `text`; None if it is not there."""
        folded = fold(text)
        found = self._pattern.search(folded)
        if found is None:
            return None
        if text.isascii():
            return found.span()
        return _unfolded(text, folded, found.start()), _unfolded(text, folded, found.end())

    @property
    def _goes_on(self) -> bool:
        return self.is_prefix and _ENDS_IN_LETTER.search(fold(self.text)) is not None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        folded = fold(self.text)
        spelled = r"\s+".join(map(re.escape, folded.split()))
        before = rf"(?<!{_LETTER})" if _BEGINS_WITH_LETTER.match(folded) else ""
        is_bound = _ENDS_IN_LETTER.search(folded) and not self.is_prefix
        return re.compile(before + spelled + (rf"(?!{_LETTER})" if is_bound else ""))


def phrases_of(arguments: Sequence[str]) -> list[Phrase]:
    """The phrases of a query. Each argument is one; quotes around it are dropped.

    Raises:
        InvalidRecordError: an argument has no letter and no digit, which the index cannot find.
    """
    found: list[Phrase] = []
    for argument in arguments:
        text = argument.strip()
        is_prefix = text.endswith("*")
        text = text.removesuffix("*")
        if len(text) > 1 and text[0] == text[-1] == '"':
            text = text[1:-1].strip()
        phrase = Phrase(text, is_prefix)
        if not phrase.words:
            raise InvalidRecordError(
                f"{argument!r} has no letter and no digit; search for it with --literal"
            )
        found.append(phrase)
    return found


def _unfolded(text: str, folded: str, offset: int) -> int:
    """The offset in a text of an offset in the folded text. Folding keeps newlines."""
    begin = 0
    for _ in range(folded.count("\n", 0, offset)):
        begin = text.index("\n", begin) + 1
    line = text[begin:].partition("\n")[0]
    wanted = offset - (folded.rfind("\n", 0, offset) + 1)
    low, high = 0, len(line)
    while low < high:
        middle = (low + high) // 2
        if len(fold(line[:middle])) < wanted:
            low = middle + 1
        else:
            high = middle
    return begin + low
