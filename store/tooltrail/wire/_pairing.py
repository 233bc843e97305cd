"""Which result belongs to which call, and what is left over on either side.

Equal keys decide where there are any. Else the id does: of several calls with it the first without
a result, in the latest batch that has one. A result without an id belongs to the first call without
one, of its name if it has a name, in the latest batch.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from tooltrail.records import CallBlock, Conversation, Message, ResultBlock
from tooltrail.wire.exports import ExportReport


@dataclass(slots=True)
class Asked:
    """A call, and its result once that is found.

    Attributes:
        block: the call.
        where: it stands, as a report says it.
        result: what came of it; None as long as there is nothing.
        is_late: whether other messages stand between the call and its result.
    """

    block: CallBlock
    where: str
    result: ResultBlock | None = None
    is_late: bool = False


@dataclass(slots=True)
class Batch:
    """The calls of one message of the assistant.

    Attributes:
        message: with everything that was said beside the calls.
        number: of the batch among all, from 0.
        asked: the calls in their order.
        is_past: whether something else was said since.
    """

    message: Message
    number: int
    asked: list[Asked]
    is_past: bool = False


@dataclass(slots=True)
class Paired:
    """A conversation whose results were found their calls.

    Attributes:
        batches: by the index of their message.
        orphans: results without a call, by the index of their message.
    """

    batches: dict[int, Batch] = field(default_factory=dict[int, Batch])
    orphans: dict[int, list[ResultBlock]] = field(default_factory=dict[int, list[ResultBlock]])


def pair(conversation: Conversation, report: ExportReport) -> Paired:
    """Find the call of every result; of several results of one call the last one counts."""
    pairing = _Pairing(report)
    for index, message in enumerate(conversation.messages):
        pairing.take(index, message)
    return pairing.paired


_Candidates = list[tuple[Batch, Asked]]


class _Pairing:
    """Calls by what a result may name them by.

    `_named` has for each name the batches with such calls, and for each of these the calls.
    """

    def __init__(self, report: ExportReport) -> None:
        self.paired = Paired()
        self._report = report
        self._named: defaultdict[Hashable, list[_Candidates]] = defaultdict(list)
        self._fresh: list[Batch] = []

    def take(self, index: int, message: Message) -> None:
        if message.role != "tool":
            for batch in self._fresh:
                batch.is_past = True
            self._fresh.clear()
        if calls := [block for block in message.blocks if isinstance(block, CallBlock)]:
            self._take_calls(index, message, calls)
        for number, result in enumerate(message.results):
            where = f"messages[{index}].results[{number}]"
            if not self._place(result, where):
                self._report.add("result_orphaned", where, "no call has asked for it")
                self.paired.orphans.setdefault(index, []).append(result)

    def _take_calls(self, index: int, message: Message, calls: list[CallBlock]) -> None:
        asked = [Asked(one, f"messages[{index}].calls[{n}]") for n, one in enumerate(calls)]
        batch = Batch(message, len(self.paired.batches), asked)
        self.paired.batches[index] = batch
        self._fresh.append(batch)
        groups: defaultdict[Hashable, _Candidates] = defaultdict(list)
        for one in asked:
            for name in _names_of_call(one.block):
                groups[name].append((batch, one))
        for name, candidates in groups.items():
            self._named[name].append(candidates)

    def _place(self, result: ResultBlock, where: str) -> bool:
        taken: tuple[Batch, Asked] | None = None
        for batch, asked in self._candidates(result):
            if asked.result is None:
                self._answer(batch, asked, result, where)
                return True
            taken = taken or (batch, asked)
        if taken is None or (result.key is None and result.call_id is None):
            return False
        told = f"{taken[1].where} has a result already; this later one counts"
        self._report.add("result_repeated", where, told)
        self._answer(*taken, result, where)
        return True

    def _answer(self, batch: Batch, asked: Asked, result: ResultBlock, where: str) -> None:
        asked.result, asked.is_late = result, batch.is_past
        if batch.is_past:
            self._report.add("result_moved", where, f"it came late; here it follows {asked.where}")

    def _candidates(self, result: ResultBlock) -> Iterator[tuple[Batch, Asked]]:
        for candidates in reversed(self._named.get(_name_of_result(result), [])):
            yield from candidates


def _names_of_call(block: CallBlock) -> list[Hashable]:
    if block.key is not None:
        return [("key", block.key)]
    if block.call.call_id is not None:
        return [("id", block.call.call_id)]
    return [("tool", block.call.tool_name), ("tool", None)]


def _name_of_result(result: ResultBlock) -> Hashable:
    if result.key is not None:
        return ("key", result.key)
    if result.call_id is not None:
        return ("id", result.call_id)
    return ("tool", result.tool_name)
