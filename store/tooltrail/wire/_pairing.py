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


@dataclass(slots=True, eq=False)
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
    asked: list["Asked"] = field(default_factory=list["Asked"])
    is_past: bool = False
    furthest: int = -1


@dataclass(slots=True, eq=False)
class Asked:
    """A call, and its result once that is found.

    Attributes:
        number: of the call in its batch, from 0.
        where: it stands, as a report says it.
    """

    batch: Batch = field(repr=False)
    block: CallBlock
    number: int
    where: str
    result: ResultBlock | None = None
    source: Message | None = None


_Name = tuple[str, str | None]
"""By what a result may name its call: a key, an id, or a tool, which may be any."""


class Paired:
    """A conversation whose results were found their calls, which are kept by what may name them.

    Attributes:
        batches: by the index of their message.
        orphans: results without a call, by the index of their message.

    `_open` has for each name the calls of each batch that it may mean, the first one last, without
    those at its end that have a result; `_latest` has the first call of the last batch in any case.
    """

    def __init__(self, report: ExportReport) -> None:
        self.batches: dict[int, Batch] = {}
        self.orphans: dict[int, list[ResultBlock]] = {}
        self._report = report
        self._open: defaultdict[_Name, list[list[Asked]]] = defaultdict(list)
        self._latest: dict[_Name, Asked] = {}
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
        batch = self.batches[index] = Batch(message, len(self.batches))
        self._fresh.append(batch)
        named: defaultdict[_Name, list[Asked]] = defaultdict(list)
        for number, block in enumerate(calls):
            where = f"messages[{index}].calls[{number}]"
            batch.asked.append(Asked(batch, block, number, where))
        for asked in reversed(batch.asked):
            for name in _names_of_call(asked.block):
                named[name].append(asked)
        for name, candidates in named.items():
            self._open[name].append(candidates)
            self._latest[name] = candidates[-1]

    def _place(self, result: ResultBlock, source: Message, where: str) -> bool:
        name = _name_of_result(result)
        waiting = self._open.get(name, [])
        while waiting:
            calls = waiting[-1]
            while calls and calls[-1].result is not None:
                calls.pop()
            if calls:
                self._answer(calls[-1], result, source, where)
                return True
            waiting.pop()
        asked = self._latest.get(name)
        if asked is None or name[0] == "tool":
            return False
        message = f"{asked.where} has a result already; this later one counts"
        self._report.add("result_repeated", where, message)
        self._answer(asked, result, source, where)
        return True

    def _answer(self, asked: Asked, result: ResultBlock, source: Message, where: str) -> None:
        batch = asked.batch
        asked.result, asked.source = result, source
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
