"""Words: how a text is split for the index, and how a query finds its words in a text.

A word is a run of letters and digits. Case is ignored, and so are the two ways to compose letters
such as `é`. Everything else separates words, so `foo_bar`, `--flag` and `/usr/lib` are two, one and
two words. In scripts without spaces between words, each character is a word.

The index says which texts have all the words of a query. Only the text itself says whether they
stand there as typed: `Phrase.find` decides.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from typing import Final
from unicodedata import normalize

from tooltrail.records.errors import InvalidRecordError

CUT: Final = 64
"""Longest word in the index, in bytes. Of a longer word, the index has the beginning."""

_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u30ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Scripts without spaces: Thai, Lao, Burmese, Khmer, Chinese, Japanese."""

_LETTER: Final = rf"[^\W_{_UNSPACED}]"
_ASCII_LETTER: Final = "[a-z0-9]"
"""A letter or digit of a folded text, of any script and in ASCII."""

_SMALL: Final = bytes(
    code if code > 127 or chr(code).isalnum() else 32 for code in bytes(range(256)).lower()
)
"""Maps capital letters of ASCII to small ones, and its other characters than letters and digits to
spaces. Other bytes of UTF-8 stay."""

_ESCAPES: Final = r"(?:\x1b|\\u001[bB])\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"
"""Control sequences of a terminal, such as those of colours (ECMA-48), also inside JSON. They end
in their line: in a receipt, a sequence without an end hides no words of the stream below."""

_LINE_ESCAPE: Final = r"\\[ntr]"
"""An escape of JSON or of a shell for white space, in a text that is quoted in another one."""

_BEHIND_ESCAPE: Final = rf"{_LINE_ESCAPE}([^\\\s]+)"

_BEHIND_OPTION: Final = r"-(?<![\w-]-)\w((?:[^\W_]|[^\x00-\x7f])+)"
"""A word behind an option of one letter, as in `-Isrc`, with the marks that compose its letters."""


def readable(text: str) -> str:
    """A text of the same length without control sequences of a terminal."""
    if "\x1b" not in text and "\\u001" not in text:
        return text
    return re.sub(_ESCAPES, lambda found: " " * len(found[0]), text)


def words_of(text: str) -> set[bytes]:
    """The different words of a text, as the index has them."""
    text = readable(text)
    if "\\" in text:  # a word also begins after an escape for white space
        text = " ".join([text, *re.findall(_BEHIND_ESCAPE, text)])
    if "-" in text:
        text = " ".join([text, *re.findall(_BEHIND_OPTION, text)])
    words = set(text.encode("utf-8", "replace").translate(_SMALL).split())
    if not text.isascii():
        others = {word for word in words if not word.isascii()}
        words -= others
        words.update(*(_split(fold(word.decode())) for word in others))
    if len(max(words, key=len, default=b"")) > CUT:
        words = {word[:CUT] for word in words}
    return words


def _split(folded: str) -> list[bytes]:
    if folded.isascii():
        return folded.encode().translate(_SMALL).split()
    return [word.encode() for word in _any_word().findall(folded)]


@cache
def _any_word() -> re.Pattern[str]:
    # Compiling takes longer than most searches.
    return re.compile(rf"[{_UNSPACED}]|{_LETTER}+")


def fold(text: str) -> str:
    """A text in which letters that count as equal are equal."""
    return text.lower() if text.isascii() else normalize("NFC", normalize("NFC", text).casefold())


class Phrase:
    """What one argument of a query asks for: a word, or several that follow each other.

    Args:
        text: the text as typed, without quotes and without `*`.
        is_prefix: whether the last word may go on.

    Attributes:
        words: words of the index that a matching text has, each with whether it may go on.
    """

    def __init__(self, text: str, *, is_prefix: bool) -> None:
        self._folded = fold(readable(text)).strip()
        found = _split(self._folded)
        # After a character that is no letter, nothing goes on.
        self._is_prefix = is_prefix
        last = found[-1].decode() if found else ""
        self._ends_in_word = self._folded.endswith(last or " ") and not _is_unspaced(last)
        self.words = [(word[:CUT], len(word) >= CUT) for word in found]
        if found and is_prefix and self._ends_in_word:
            self.words[-1] = (found[-1][:CUT], True)
        self._patterns: dict[str, re.Pattern[str]] = {}

    def find(self, text: str) -> tuple[int, int] | None:
        """The first place of the phrase in a text, as offsets in it; None if there is none."""
        folded = fold(readable(text))
        found = self._pattern(_ASCII_LETTER if folded.isascii() else _LETTER).search(folded)
        if found is None or text.isascii():
            return None if found is None else found.span()
        return _unfolded(text, folded, found.start()), _unfolded(text, folded, found.end())

    def _pattern(self, letter: str) -> re.Pattern[str]:
        """The pattern for texts with these letters."""
        if letter not in self._patterns:
            spelled = r"\s+".join(map(re.escape, self._folded.split()))
            begins = bool(_split(self._folded[:1])) and not _is_unspaced(self._folded[0])
            before = rf"(?:(?<!{letter})|(?<={_LINE_ESCAPE}))" if begins else ""
            after = f"(?!{letter})" if self._ends_in_word and not self._is_prefix else ""
            self._patterns[letter] = re.compile(before + spelled + after)
        return self._patterns[letter]


def phrases_of(arguments: Sequence[str]) -> list[Phrase]:
    """The phrases of a query. Each argument is one; quotes around it are dropped.

    Raises `InvalidRecordError` if an argument has no letter and no digit: the index has none of it.
    """
    found: list[Phrase] = []
    for argument in arguments:
        text = argument.strip()
        is_prefix = text.endswith("*")
        text = text.removesuffix("*")
        if len(text) > 1 and text[0] == text[-1] == '"':
            text = text[1:-1].strip()
        phrase = Phrase(text, is_prefix=is_prefix)
        if not phrase.words:
            raise InvalidRecordError(
                f"'{argument}' has no letter and no digit; search for it with --literal"
            )
        found.append(phrase)
    return found


def _is_unspaced(word: str) -> bool:
    """Whether a word is one character of a script without spaces."""
    return len(word) == 1 and not word.isascii() and re.match(f"[{_UNSPACED}]", word) is not None


def _unfolded(text: str, folded: str, offset: int) -> int:
    """The offset in a text of an offset in the folded text. Folding keeps newlines."""
    begin = 0
    for _ in range(folded.count("\n", 0, offset)):
        begin = text.index("\n", begin) + 1
    line = text[begin:].partition("\n")[0]
    wanted = offset - (folded.rfind("\n", 0, offset) + 1)
    return begin + bisect_left(range(len(line)), wanted, key=lambda end: len(fold(line[:end])))
