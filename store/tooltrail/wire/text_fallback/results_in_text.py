"""Results in the text of a user: those of calls that wait for one, and nothing else.

A block is a result when its id is that of a call of the last message of the assistant that has none
yet; in a family without ids, when such a call is left, of its name where it says one. Every other
block is what the user says. So an output cannot answer for another call, and a text that the user
quotes answers none.
"""

from collections import defaultdict, deque
from collections.abc import Iterable

from tooltrail.records import ResultBlock, TextBlock, ToolCall
from tooltrail.wire._reading import result_of_text
from tooltrail.wire.text_fallback.family import FoundResult, TextFamily, spelled_name


class Pending:
    """The calls that wait for their results."""

    def __init__(self, family: TextFamily) -> None:
        self._family = family
        self._waiting: dict[int, ToolCall] = {}
        self._named: defaultdict[tuple[str | None, str | None], deque[int]] = defaultdict(deque)

    def ask(self, calls: Iterable[ToolCall]) -> None:
        """A message of the assistant: its calls are the ones that wait from now on."""
        self._waiting = dict(enumerate(calls))
        self._named.clear()
        for number, call in self._waiting.items():
            call_id = call.call_id if self._family.tells_ids else None
            self._named[call_id, spelled_name(call.namespace, call.tool_name)].append(number)
            self._named[call_id, None].append(number)

    def take(self, found: FoundResult) -> ToolCall | None:
        """The call that a block answers; None when it answers none."""
        numbers = self._named.get((found.call_id or None, found.tool_name), deque())
        while numbers:
            call = self._waiting.pop(numbers.popleft(), None)
            if call is not None:
                return call
        return None


def read_results(
    family: TextFamily, text: str, pending: Pending
) -> tuple[tuple[ResultBlock, ...], tuple[TextBlock, ...]]:
    """The results in a text, and what else it says."""
    results: list[ResultBlock] = []
    texts: list[str] = []
    place = 0
    for found in family.find_results(text):
        call = pending.take(found)
        if call is None:
            continue
        results.append(_result(found, call))
        texts.append(_beside(text[place : found.begin], is_first=place == 0, is_last=False))
        place = found.end
    texts.append(_beside(text[place:], is_first=place == 0, is_last=True))
    return tuple(results), tuple(TextBlock(text=one) for one in texts if one)


def _result(found: FoundResult, call: ToolCall) -> ResultBlock:
    content = (TextBlock(text=found.text),) if found.text else ()
    tool_name = None if found.tool_name is None else call.tool_name
    if found.status is None:
        return result_of_text(found.call_id, tool_name, content)
    return ResultBlock(
        call_id=found.call_id, tool_name=tool_name, status=found.status, content=content
    )


def _beside(text: str, *, is_first: bool, is_last: bool) -> str:
    """A text between results, without the blank lines that set them apart."""
    if not is_first:
        text = text.removeprefix("\n").removeprefix("\n")
    if not is_last:
        text = text.removesuffix("\n").removesuffix("\n")
    return text
