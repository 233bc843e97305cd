"""Pairs the calls in messages with invocations and results, and finds alternative messages.

An invocation belongs to the call that it names. Otherwise it belongs to the latest call with the
same id, tool and arguments. If there never was one, it belongs to the latest call with the same id
and tool, since a runtime can spell arguments differently. Without ids, tool and arguments decide.

A result in a message belongs to the call with its id. A result without an id belongs to the first
call of its tool in the latest answer; calls without an id from their provider come first. All pairs
are made before anything is written: a result can be recorded before the invocation of its call.
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
"""The id of a message, and the number of a block in the message."""

_Name = tuple[str | None, ...]
"""A key to find a call: its kind, then an id, a key or a tool (None for any), or several."""


@dataclass(slots=True, eq=False)
class Answer:
    """The answer of a provider to one request: a message, or several alternatives.

    Attributes:
        views: the messages in order; empty if no message asked for the call.
    """

    views: list[MessageView] = field(default_factory=list[MessageView])
    choices: list[int] = field(default_factory=list[int])


@dataclass(slots=True, eq=False)
class Asked:
    """A call that a message asks for, or an invocation that no message asked for.

    Attributes:
        answer: the answer that contains the call.
        message_id: id of the message with the call; None if no message asked for the call.
        results: number of results in messages that belong to this call.
    """

    call: ToolCall
    answer: Answer
    message_id: UUID | None = None
    run: InvocationDetail | None = None
    results: int = 0


class _Waiting:
    """The calls of one name that can still be free, those of the latest answer first.

    Attributes:
        latest: first call of the latest answer, free or not; None if no call was added.
    """

    def __init__(self) -> None:
        self._answers: list[deque[Asked]] = []
        self.latest: Asked | None = None

    def add(self, asked: Asked) -> None:
        """Add a call that was made after all others."""
        if self.latest is None or self.latest.answer is not asked.answer:
            self.latest = asked
        if not self._answers or self._answers[-1][0].answer is not asked.answer:
            self._answers.append(deque())
        self._answers[-1].append(asked)

    def next(self, is_free: Callable[[Asked], bool]) -> Asked | None:
        """The first free call of the latest answer that has one. Drops calls that are not free."""
        while self._answers:
            calls = self._answers[-1]
            if is_free(calls[0]):
                return calls[0]
            calls.popleft()
            if not calls:
                self._answers.pop()
        return None


class Pairs:
    """The calls, results and alternatives of a transcript.

    Attributes:
        messages: the recorded messages by id.
        calls: the call of each call block.
        results: the call of each result block; an orphaned result has no entry.
        runs: the call of each invocation, by the id of the invocation.
        left: ids of messages that are alternatives to a continued message.
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
                self._add_invocation(entry)
            elif entry.tools is None:
                self._add_message(entry)
        self._choose(transcript.until)

    def _add_message(self, view: MessageView) -> None:
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
                self._expect_results(asked, block.key)
            elif isinstance(block, ResultBlock):
                self._add_result((view.id, number), block)

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
        """Whether a message is another choice of the last answer."""
        before = self.messages[last.views[-1].id]
        mine, other = message.origin, before.origin
        if mine is None or other is None or mine.choice in last.choices:
            return False
        # The choices of one answer have consecutive ids, see `tooltrail.journal.answers`.
        follows = view.id.int == last.views[-1].id.int + 1
        is_named_alike = mine.response_id == other.response_id and bool(mine.response_id)
        return mine.wire_format == other.wire_format and (follows or is_named_alike)

    def _add_invocation(self, detail: InvocationDetail) -> None:
        asked = self._call_of(detail)
        if asked is None:
            asked = Asked(_call_from(detail, self._servers), Answer())
            self._expect_results(asked)
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
                # None if the call has run: a second run does not belong to another call.
                return waiting.next(lambda asked: asked.run is None)
        return None

    def _expect_results(self, asked: Asked, key: str | None = None) -> None:
        """Let results in messages find a call, including a result that came before the call."""
        names = _names_of_result(asked.call, key)
        for name in names:
            self._unanswered[name].add(asked)
        if asked.message_id is None and asked.call.call_id and self._early[names[0]]:
            self.results[self._early[names[0]].pop(0)] = asked
            asked.results += 1

    def _add_result(self, place: BlockPlace, block: ResultBlock) -> None:
        name: _Name
        if block.key is not None:
            name = ("key", block.key)
        else:
            tool = block.tool_name and name_with_server(block.namespace, block.tool_name)
            name = ("id", block.call_id) if block.call_id else ("tool", tool)
        asked = self._unanswered[name].next(_is_unanswered)
        if asked is None and name[0] == "tool":
            # Some servers send ids with calls, and accept results without ids.
            asked = self._unanswered["any", name[1]].next(_is_unanswered)
        elif asked is None:
            asked = self._unanswered[name].latest
        if asked is None:
            self._early[name].append(place)
            return
        asked.results += 1
        self.results[place] = asked

    def _choose(self, until: UUID | None) -> None:
        """Keep the alternatives whose calls were run, else those with results, else the first.

        If the transcript ends at an alternative, that one is kept instead of the first.
        """
        run = {one.message_id for one in self.calls.values() if one.run is not None}
        answered = {one.message_id for one in self.calls.values() if one.results}
        for answer in self._answers:
            ids = [view.id for view in answer.views]
            first = until if until in ids else ids[0]
            kept = run.intersection(ids) or answered.intersection(ids) or {first}
            self.left.update(one for one in ids if one not in kept)


def message_of(view: MessageView) -> Message:
    """The recorded message. Without a stored document, the message has only its text."""
    if view.document is not None:
        return Message.from_json(view.document)
    if view.role in _ROLES and view.role != "tool":
        return Message.of(cast("Role", view.role), view.text)
    # A runtime can have its own roles, which are not roles of a provider.
    return Message(role="user", blocks=(TextBlock(text=view.text, extras={"role": view.role}),))


def _call_from(detail: InvocationDetail, servers: Container[str | None]) -> ToolCall:
    """A call made from an invocation, with its server if the server is known."""
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
    """Whether a result in a message is exactly the text of the receipt of its call."""
    texts = [one.text for one in block.content if isinstance(one, TextBlock)]
    if len(texts) < len(block.content) or block.has_structured or run.receipt is None:
        return False
    # Formats without a flag mark a failure with this prefix.
    return "".join(texts).strip().removeprefix("ERROR: ") == run.receipt.text.strip()


def _names_of_run(call_id: str | None, tool_name: str, raw: str) -> list[_Name]:
    """The names with which an invocation can find its call, the most specific first."""
    exact: _Name = ("run", call_id or None, tool_name, raw)
    return [exact, ("run", call_id, tool_name)] if call_id else [exact]


def _names_of_result(call: ToolCall, key: str | None) -> list[_Name]:
    """The names with which a result can find a call. Providers do not know synthesised ids."""
    names: list[_Name] = [("id", call.call_id)] if call.call_id else []
    kinds = ("tool", "any") if not call.call_id or "id_synthesised" in call.flags else ("any",)
    tools = dict.fromkeys((call.full_name, call.tool_name, None))
    names += [(kind, name) for kind in kinds for name in tools]
    return names if key is None else [*names, ("key", key)]


def _is_unanswered(asked: Asked) -> bool:
    return asked.results == 0
