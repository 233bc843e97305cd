"""Which invocation ran which call of a message, which result of a message is of which call, and
which messages are alternatives.

An invocation belongs to the call that it names; else to the latest one with its id, its tool and
its arguments; where there never was one, to the latest one with its id and its tool, for a runtime
may spell arguments anew. Where neither has an id, tool and arguments decide.

A result of a message belongs to the call with its id; without one, to the first call of its tool in
the latest answer, of those without an id of their provider's if there are any. All of it is found
out first: a result may have been recorded before the invocation of its call.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import cast, get_args
from uuid import UUID

from tooltrail.records import CallBlock, Message, ResultBlock, Role, TextBlock, ToolCall
from tooltrail.records.tool_calls import SERVER_SEPARATOR, name_with_server
from tooltrail.store.views import InvocationDetail, MessageView
from tooltrail.transcripts._wording import arguments
from tooltrail.transcripts.transcript import Transcript

_ROLES: frozenset[str] = frozenset(get_args(Role))

BlockPlace = tuple[UUID, int]
"""The id of a message, and the number of a block in it."""

_Name = tuple[str | None, ...]
"""By what a call may be named: an id, a key, a tool, which may be any, or several of them, behind
the word for it."""


@dataclass(slots=True, eq=False)
class Answer:
    """What a provider answered to one request: a message, or several that are alternatives.

    Attributes:
        views: the messages, in their order; none where no message asked for the call.
    """

    views: list[MessageView] = field(default_factory=list[MessageView])
    choices: list[int] = field(default_factory=list[int])


@dataclass(slots=True, eq=False)
class Asked:
    """A call that a message asks for, or one that was run though no message asked for it.

    Attributes:
        answer: that it stands in.
        message_id: of the message; None where none asked for it.
        results: how many results of messages are of this call.
    """

    call: ToolCall
    answer: Answer
    message_id: UUID | None = None
    run: InvocationDetail | None = None
    results: int = 0


class _Waiting:
    """Calls of one name that may be free, those of the latest answer first.

    Attributes:
        latest: the first call of the latest answer, free or not; None as long as there is none.
    """

    def __init__(self) -> None:
        self._answers: list[deque[Asked]] = []
        self.latest: Asked | None = None

    def add(self, asked: Asked) -> None:
        """A call that comes behind all others."""
        if self.latest is None or self.latest.answer is not asked.answer:
            self.latest = asked
        if not self._answers or self._answers[-1][0].answer is not asked.answer:
            self._answers.append(deque())
        self._answers[-1].append(asked)

    def next(self, is_free: Callable[[Asked], bool]) -> Asked | None:
        """The first free call of the latest answer that has one; what is taken once stays so."""
        while self._answers:
            calls = self._answers[-1]
            if is_free(calls[0]):
                return calls[0]
            calls.popleft()
            if not calls:
                self._answers.pop()
        return None


class Pairs:
    """What belongs together in a transcript.

    Attributes:
        messages: as they were recorded, by their ids.
        results: the call of each result of a message; of an orphan none.
        left: messages that are alternatives to one that was continued, by their ids.
    """

    def __init__(self, transcript: Transcript) -> None:
        views = [entry for entry in transcript.entries if isinstance(entry, MessageView)]
        self.messages = {view.id: message_of(view) for view in views if view.tools is None}
        self.calls: dict[BlockPlace, Asked] = {}
        self.results: dict[BlockPlace, Asked] = {}
        self.runs: dict[UUID, Asked] = {}
        self.left: set[UUID] = set()
        self._placed: dict[tuple[UUID, int], Asked] = {}
        self._unrun: defaultdict[_Name, _Waiting] = defaultdict(_Waiting)
        self._unanswered: defaultdict[_Name, _Waiting] = defaultdict(_Waiting)
        self._early: defaultdict[_Name, list[BlockPlace]] = defaultdict(list)
        self._answers: list[Answer] = []
        self._servers = {tool.definition.namespace for view in views for tool in view.tools or ()}
        self._servers |= {call.namespace for one in self.messages.values() for call in one.calls}
        for entry in transcript.entries:
            if isinstance(entry, InvocationDetail):
                self._take_invocation(entry)
            elif entry.tools is None:
                self._take_message(entry)
        self._choose(transcript.until)

    def _take_message(self, view: MessageView) -> None:
        message = self.messages[view.id]
        answer = self._answer_of(view, message)
        position = 0
        for number, block in enumerate(message.blocks):
            if isinstance(block, CallBlock):
                asked = Asked(block.call, answer, view.id)
                self.calls[view.id, number] = self._placed[view.id, position] = asked
                position += 1
                call = block.call
                for name in _names_of_run(call.call_id, call.full_name, call.arguments_raw):
                    self._unrun[name].add(asked)
                self._wait(asked, block.key)
            elif isinstance(block, ResultBlock):
                self._take_result((view.id, number), block)

    def _answer_of(self, view: MessageView, message: Message) -> Answer:
        last = self._answers[-1] if self._answers else None
        choice = 0 if message.origin is None else message.origin.choice
        if last is None or not self._is_alternative(last, view, message):
            last = Answer()
            self._answers.append(last)
        last.views.append(view)
        last.choices.append(choice)
        return last

    def _is_alternative(self, last: Answer, view: MessageView, message: Message) -> bool:
        """Whether a message is another choice of the answer that the last one is of."""
        before = self.messages[last.views[-1].id]
        mine, other = message.origin, before.origin
        if mine is None or other is None or mine.choice in last.choices:
            return False
        # Ids that follow each other are those of one answer, see `tooltrail.journal.answers`.
        follows = view.id.int == last.views[-1].id.int + 1
        is_named_alike = mine.response_id == other.response_id and bool(mine.response_id)
        return mine.wire_format == other.wire_format and (follows or is_named_alike)

    def _take_invocation(self, detail: InvocationDetail) -> None:
        asked = self._call_of(detail)
        if asked is None:
            asked = Asked(_own_call(detail, self._servers), Answer())
            self._wait(asked)
        asked.run = asked.run or detail
        self.runs[detail.summary.id] = asked

    def _call_of(self, detail: InvocationDetail) -> Asked | None:
        if detail.message_id is not None:
            asked = self._placed.get((detail.message_id, detail.position or 0))
            if asked is not None:
                return asked
        summary = detail.summary
        for name in _names_of_run(summary.call_id, summary.tool_name, arguments(detail)):
            if waiting := self._unrun.get(name):
                # None where it was run before: another call is not what was run again.
                return waiting.next(lambda asked: asked.run is None)
        return None

    def _wait(self, asked: Asked, key: str | None = None) -> None:
        """Let results of messages find a call; one that came before its call finds it now."""
        names = _names_of_result(asked.call, key)
        for name in names:
            self._unanswered[name].add(asked)
        if asked.message_id is None and asked.call.call_id and self._early[names[0]]:
            self.results[self._early[names[0]].pop(0)] = asked
            asked.results += 1

    def _take_result(self, place: BlockPlace, block: ResultBlock) -> None:
        name: _Name
        if block.key is not None:
            name = ("key", block.key)
        else:
            tool = block.tool_name and name_with_server(block.namespace, block.tool_name)
            name = ("id", block.call_id) if block.call_id else ("tool", tool)
        asked = self._unanswered[name].next(_is_unanswered)
        if asked is None and name[0] == "tool":
            # Some servers give ids and take results without.
            asked = self._unanswered["any", name[1]].next(_is_unanswered)
        elif asked is None:
            asked = self._unanswered[name].latest
        if asked is None:
            self._early[name].append(place)
            return
        asked.results += 1
        self.results[place] = asked

    def _choose(self, until: UUID | None) -> None:
        """Of alternatives those stay whose calls were run, else had results, else the first.

        The choice at which the transcript ends stays where nobody knew yet which is continued.
        """
        run = {one.message_id for one in self.calls.values() if one.run is not None}
        answered = {one.message_id for one in self.calls.values() if one.results}
        for answer in self._answers:
            ids = [view.id for view in answer.views]
            first = until if until in ids else ids[0]
            kept = run.intersection(ids) or answered.intersection(ids) or {first}
            self.left.update(one for one in ids if one not in kept)


def message_of(view: MessageView) -> Message:
    """A message as it was recorded; of one without a document there is its text."""
    if view.document is not None:
        return Message.from_json(view.document)
    if view.role in _ROLES and view.role != "tool":
        return Message.of(cast("Role", view.role), view.text)
    # What a runtime calls its own kinds of messages is no role of a provider's.
    return Message(role="user", blocks=(TextBlock(text=view.text, extras={"role": view.role}),))


def _own_call(detail: InvocationDetail, servers: Container[str | None]) -> ToolCall:
    """The call of an invocation, as far as it says it itself; its server, if that is known."""
    summary = detail.summary
    server, _, name = summary.tool_name.partition(SERVER_SEPARATOR)
    is_of_server = bool(server and name) and server in servers
    return ToolCall(
        tool_name=name if is_of_server else summary.tool_name,
        namespace=server if is_of_server else None,
        arguments_raw=arguments(detail),
        call_id=summary.call_id,
    )


def repeats_receipt(block: ResultBlock, run: InvocationDetail) -> bool:
    """Whether a result of a message is what the receipt of its call says, and no more."""
    texts = [one.text for one in block.content if isinstance(one, TextBlock)]
    if len(texts) < len(block.content) or run.receipt is None:
        return False
    # Formats without a flag mark a failure with this prefix.
    return "".join(texts).strip().removeprefix("ERROR: ") == run.receipt.text.strip()


def _names_of_run(call_id: str | None, tool_name: str, raw: str) -> list[_Name]:
    """By what an invocation may name its call, the surest first."""
    exact: _Name = ("run", call_id or None, tool_name, raw)
    return [exact, ("run", call_id, tool_name)] if call_id else [exact]


def _names_of_result(call: ToolCall, key: str | None) -> list[_Name]:
    """By what a result may name a call; an id that was made for it no provider knows."""
    names: list[_Name] = [("id", call.call_id)] if call.call_id else []
    kinds = ("tool", "any") if not call.call_id or "id_synthesised" in call.flags else ("any",)
    tools = dict.fromkeys((call.full_name, call.tool_name, None))
    names += [(kind, name) for kind in kinds for name in tools]
    return names if key is None else [*names, ("key", key)]


def _is_unanswered(asked: Asked) -> bool:
    return asked.results == 0
