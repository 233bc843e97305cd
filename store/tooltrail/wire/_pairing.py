"""Pairs results with calls, and finds results without a call and calls without a result.

A result with a key belongs to the call with that key. Else its id decides: among the calls with
the id, the first one without a result, in the latest batch that has such a call. A result without
an id belongs likewise to a call without an id, of the same tool if the result names a tool.
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
        number: the index of the batch among all batches, from 0.
        furthest: the highest number of a call that has a result; -1 if none has one.
    """

    message: Message
    number: int
    asked: list["Asked"] = field(default_factory=list["Asked"])
    furthest: int = -1


@dataclass(slots=True, eq=False)
class Asked:
    """A call, and its result once that is found.

    Attributes:
        number: the index of the call in its batch, from 0.
        where: the position of the call, in the words of a report.
    """

    batch: Batch = field(repr=False)
    block: CallBlock
    number: int
    where: str
    result: ResultBlock | None = None
    source: Message | None = None


_Name = tuple[str, str | None]
"""How a result names its call: by key, by id, or by tool; a tool of None means any tool."""


class Paired:
    """A conversation with its results paired with calls.

    Attributes:
        batches: the batches by the index of their message.
        orphans: the results without a call, by the index of their message.

    `_open` has, for each name, one list of candidate calls per batch. Each list is reversed, so the
    first call is at its end; calls with a result are removed there. `_latest` has, for each name,
    the first call of the last batch, with or without a result.
    """

    def __init__(self, report: ExportReport) -> None:
        self.batches: dict[int, Batch] = {}
        self.orphans: dict[int, list[ResultBlock]] = {}
        self._report = report
        self._open: defaultdict[_Name, list[list[Asked]]] = defaultdict(list)
        self._latest: dict[_Name, Asked] = {}
        # The number of batches that a message other than a tool's follows.
        self._past = 0

    def take(self, index: int, message: Message) -> None:
        """Add the next message of the conversation."""
        if message.role != "tool":
            self._past = len(self.batches)
        if calls := [block for block in message.blocks if isinstance(block, CallBlock)]:
            self._take_calls(index, message, calls)
        for number, result in enumerate(message.results):
            where = f"messages[{index}].results[{number}]"
            if not self._place(result, message, where):
                self._report.add("result_orphaned", where, "no call has asked for it")
                self.orphans.setdefault(index, []).append(result)

    def _take_calls(self, index: int, message: Message, calls: list[CallBlock]) -> None:
        batch = self.batches[index] = Batch(message, len(self.batches))
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
        if batch.number < self._past:
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
    """Find the call of every result; if a call has several results, the last one is used."""
    paired = Paired(report)
    for index, message in enumerate(conversation.messages):
        paired.take(index, message)
    return paired
