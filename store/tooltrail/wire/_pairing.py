"""Which result belongs to which call, and what is left over on either side.

Equal keys decide where there are any. Else the id does: of several calls with it the first without
a result, in the latest batch that has one. A result without an id belongs to the first call without
one, of its name if it has a name, in the latest batch.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from tooltrail.records import CallBlock, Conversation, Message, ResultBlock
from tooltrail.wire._identifiers import spelled_name
from tooltrail.wire.exports import ExportReport


@dataclass(slots=True)
class Asked:
    """A call, and its result once that is found.

    Attributes:
        number: of the call in its batch, from 0.
        where: it stands, as a report says it.
        is_late: whether other messages stand between the call and its result.
    """

    block: CallBlock
    number: int
    where: str
    result: ResultBlock | None = None
    is_late: bool = False
    source: Message | None = None


@dataclass(slots=True)
class Batch:
    """The calls of one message of the assistant.

    Attributes:
        message: with everything that was said beside the calls.
        number: of the batch among all, from 0.
        is_past: whether something else was said since.
        furthest: the number of the last call in their order that has a result.
    """

    message: Message
    number: int
    asked: list[Asked]
    is_past: bool = False
    furthest: int = -1


_Name = tuple[str, str | None]
"""By what a result may name its call: a key, an id, or a tool, which may be any."""


@dataclass(slots=True)
class _Candidates:
    """The calls of one batch that a result may name alike, and how many of them have one."""

    batch: Batch
    calls: list[Asked] = field(default_factory=list[Asked])
    answered: int = 0

    def next(self) -> Asked | None:
        """The first call without a result."""
        while self.answered < len(self.calls):
            if self.calls[self.answered].result is None:
                return self.calls[self.answered]
            self.answered += 1
        return None


class Paired:
    """A conversation whose results were found their calls, which are kept by what may name them.

    Attributes:
        batches: by the index of their message.
        orphans: results without a call, by the index of their message.

    `_open` has for each name the batches with such calls, without those at its end that have all
    their results; `_latest` has the last of them in any case.
    """

    def __init__(self, report: ExportReport) -> None:
        self.batches: dict[int, Batch] = {}
        self.orphans: dict[int, list[ResultBlock]] = {}
        self._report = report
        self._open: defaultdict[_Name, list[_Candidates]] = defaultdict(list)
        self._latest: dict[_Name, _Candidates] = {}
        self._fresh: list[Batch] = []

    def take(self, index: int, message: Message) -> None:
        """Take the next message of the conversation."""
        if message.role != "tool":
            for batch in self._fresh:
                batch.is_past = True
            self._fresh.clear()
        if calls := [block for block in message.blocks if isinstance(block, CallBlock)]:
            self._take_calls(index, message, calls)
        for number, result in enumerate(message.results):
            where = f"messages[{index}].results[{number}]"
            if not self._place(result, message, where):
                self._report.add("result_orphaned", where, "no call has asked for it")
                self.orphans.setdefault(index, []).append(result)

    def _take_calls(self, index: int, message: Message, calls: list[CallBlock]) -> None:
        asked = [Asked(one, n, f"messages[{index}].calls[{n}]") for n, one in enumerate(calls)]
        batch = Batch(message, len(self.batches), asked)
        self.batches[index] = batch
        self._fresh.append(batch)
        named: dict[_Name, _Candidates] = {}
        for one in asked:
            for name in _names_of_call(one.block):
                named.setdefault(name, _Candidates(batch)).calls.append(one)
        for name, candidates in named.items():
            self._open[name].append(candidates)
        self._latest.update(named)

    def _place(self, result: ResultBlock, source: Message, where: str) -> bool:
        name = _name_of_result(result)
        waiting = self._open.get(name, [])
        while waiting:
            asked = waiting[-1].next()
            if asked is not None:
                self._answer(waiting[-1].batch, asked, result, source, where)
                return True
            waiting.pop()
        latest = self._latest.get(name)
        if latest is None or name[0] == "tool":
            return False
        taken = latest.calls[0]
        message = f"{taken.where} has a result already; this later one counts"
        self._report.add("result_repeated", where, message)
        self._answer(latest.batch, taken, result, source, where)
        return True

    def _answer(
        self, batch: Batch, asked: Asked, result: ResultBlock, source: Message, where: str
    ) -> None:
        asked.result, asked.source, asked.is_late = result, source, batch.is_past
        if batch.is_past:
            self._report.add("result_moved", where, f"it came late; here it follows {asked.where}")
        elif asked.number < batch.furthest:
            self._report.add("order_changed", where, "results stand in the order of their calls")
        batch.furthest = max(batch.furthest, asked.number)


def _names_of_call(block: CallBlock) -> list[_Name]:
    if block.key is not None:
        return [("key", block.key)]
    if block.call.call_id:
        return [("id", block.call.call_id)]
    call = block.call
    of_server = [("tool", spelled_name(call.namespace, call.tool_name))] if call.namespace else []
    return [*of_server, ("tool", call.tool_name), ("tool", None)]


def _name_of_result(result: ResultBlock) -> _Name:
    if result.key is not None:
        return ("key", result.key)
    if result.call_id:
        return ("id", result.call_id)
    if result.tool_name is None or not result.namespace:
        return ("tool", result.tool_name)
    return ("tool", spelled_name(result.namespace, result.tool_name))


def pair(conversation: Conversation, report: ExportReport) -> Paired:
    """Find the call of every result; of several results of one call the last one counts."""
    paired = Paired(report)
    for index, message in enumerate(conversation.messages):
        paired.take(index, message)
    return paired
