"""Words: how a text is split for the index, and how a query finds its words in a text.

A word is a run of letters and digits. Case is ignored, and so are the two ways to compose letters
such as `é`. Everything else separates words, so `foo_bar`, `--flag` and `/usr/lib` are two, one and
two words. In scripts without spaces between words, each character is a word.

The index says which texts have all the words of a query. Only the text itself says whether they
stand there as typed: `Phrase.find` decides.
"""

import re
from collections.abc import Sequence
from functools import cache
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
_ASCII_LETTER: Final = "[a-z0-9]"
"""A letter or digit of a folded text, of any script and in ASCII."""

_ASCII: Final = bytes(
    code + 32 if chr(code).isupper() else code if chr(code).isalnum() else 32 for code in range(128)
).ljust(256)
"""Maps ASCII letters to small letters, and other bytes than letters and digits to spaces."""


_ASCII_BYTES: Final = bytes(range(128))
_BEYOND_TO_SPACE: Final = _ASCII_BYTES.ljust(256)


_ESCAPES: Final = r"(?:\x1b|\\u001[bB])\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
"""Control sequences of a terminal, such as those of colours (ECMA-48), also inside JSON."""

_LINE_ESCAPE: Final = r"\\[ntr]"
"""An escape of JSON or of a shell for white space, in a text that is quoted in another one."""


def readable(text: str) -> str:
    """A text of the same length without control sequences of a terminal."""
    if "\x1b" not in text and "\\u001" not in text:
        return text
    return re.sub(_ESCAPES, lambda found: " " * len(found[0]), text)


def indexed(text: str) -> str:
    """What the index has of a text. After an escape for white space, a word begins, too."""
    text = readable(text)
    return f"{text} {re.sub(_LINE_ESCAPE, ' ', text)}" if "\\" in text else text


def words_of(text: str) -> set[str]:
    """The different words of a text, as the index has them."""
    text = indexed(text)
    plain = ascii_words(text)
    return {word[:CUT] for word in set(_split(fold(text if plain is None else plain)))}


def _split(folded: str) -> list[str]:
    if folded.isascii():
        return folded.encode().translate(_ASCII).decode().split()
    return _any_word().findall(folded)


@cache
def _any_word() -> re.Pattern[str]:
    # Compiling takes longer than most searches.
    return re.compile(rf"[{_UNSPACED}]|{_LETTER}+")


def ascii_words(text: str) -> str | None:
    """A text of ASCII with the same words; None if there are letters beyond ASCII.

    Much text has a dash or a tick beyond ASCII, and no such letter.
    """
    if text.isascii():
        return text
    data = text.encode("utf-8", "replace")
    beyond = "".join(set(data.translate(None, _ASCII_BYTES).decode()))
    if _split(fold(beyond)) or any(category(char).startswith("M") for char in beyond):
        return None
    return data.translate(_BEYOND_TO_SPACE).decode()


def fold(text: str) -> str:
    """A text in which letters that count as equal are equal."""
    return text.lower() if text.isascii() else normalize("NFC", normalize("NFC", text).casefold())


class Phrase:
    """What one argument of a query asks for: a word, or several that follow each other.

    Args:
        text: the text as typed, without quotes and without `*`.
        is_prefix: whether the last word may go on.

    Attributes:
        words: words of the index that a matching text has, each with whether it may go on there.
    """

    def __init__(self, text: str, *, is_prefix: bool) -> None:
        self._folded = fold(text)
        found = _split(self._folded)
        # After a character that is no letter, nothing goes on.
        self._is_prefix = is_prefix
        last = found[-1] if found and self._folded.endswith(found[-1]) else None
        self._ends_in_word = last is not None and not _is_unspaced(last)
        goes_on = [False] * (len(found) - 1) + [is_prefix and self._ends_in_word]
        self.words = [
            (word[:CUT], len(word) >= CUT or on) for word, on in zip(found, goes_on, strict=False)
        ]
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
        phrase = Phrase(text, is_prefix=is_prefix)
        if not phrase.words:
            raise InvalidRecordError(
                f"{argument!r} has no letter and no digit; search for it with --literal"
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
    low, high = 0, len(line)
    while low < high:
        middle = (low + high) // 2
        if len(fold(line[:middle])) < wanted:
            low = middle + 1
        else:
            high = middle
    return begin + low
