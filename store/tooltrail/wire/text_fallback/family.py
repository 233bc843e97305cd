"""What a text format is: how one family of models reads calls and results, and writes calls."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tooltrail.records import ResultStatus
from tooltrail.wire.text_fallback.markup import Escaping

TextKind = Literal["function", "custom"]


@dataclass(frozen=True, slots=True)
class TextCall:
    """A call as a text format spells it, to be written or found in a text.

    Attributes:
        tool_name: of the tool; empty when it cannot be read.
        call_id: of the call; None when it has none.
        arguments: the text of them; all there is of the call when it cannot be read.
        kind: whether they are JSON or free text.
        problem: why a call that was found is not as its format says; None when it is.
    """

    tool_name: str
    call_id: str | None
    arguments: str
    kind: TextKind = "function"
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class TextResult:
    """A result as a text format spells it.

    Attributes:
        call_id: of the call; None when it has none.
    """

    tool_name: str
    call_id: str | None
    status: ResultStatus
    text: str


@dataclass(frozen=True, slots=True)
class FoundResult:
    """A result that was found in a text.

    Attributes:
        call_id: of the call; None where the format or the block does not say it.
        tool_name: of the call, the same.
        status: how it came out; None where the text alone can say it.
    """

    begin: int
    end: int
    text: str
    call_id: str | None = None
    tool_name: str | None = None
    status: ResultStatus | None = None


@dataclass(frozen=True, slots=True)
class TextFamily:
    """How one family of models reads calls and results.

    Attributes:
        write_calls: all calls of one batch as one text.
        write_results: all results of one batch as one text.
        call_begin: a pattern of the beginning of calls, for lines of any case.
        take_calls: the calls that begin with a match of it, none where it turned out to be no
            call; and where they end, and the text goes on.
        find_results: the blocks of results in a text, in order.
        marks: what an assistant's own text must not have.
        tells_ids: whether calls and results say the id.
        tells_kinds: whether calls say that they are free text.
        tells_errors: whether results say that they are failures; else their text has a prefix.
        tells_status: whether results say in all detail how they came out.
    """

    name: str
    write_calls: Callable[[Sequence[TextCall]], str]
    write_results: Callable[[Sequence[TextResult]], str]
    call_begin: str
    take_calls: Callable[[str, re.Match[str]], tuple[list[TextCall], int]]
    find_results: Callable[[str], Iterator[FoundResult]]
    marks: Escaping
    tells_ids: bool = False
    tells_kinds: bool = False
    tells_errors: bool = False
    tells_status: bool = False
