"""The input of a request to OpenAI Responses into the canonical conversation.

Items have no batches. What the model said up to the next output, or to the next message of somebody
else, is taken for one turn: one message of the assistant. A message has an origin where something
in it is for this format alone.
"""

from pydantic import JsonValue

from tooltrail.records import (
    Conversation,
    InvalidRecordError,
    Message,
    ResultBlock,
    Role,
)
from tooltrail.wire._reading import is_for_provider, message_of_request, with_origins
from tooltrail.wire.members import JsonObject, object_in, text_in
from tooltrail.wire.openai_responses.asking import read_tools
from tooltrail.wire.openai_responses.calls import hosted_shells, type_of
from tooltrail.wire.openai_responses.limits import NAME
from tooltrail.wire.openai_responses.outputs import OUTPUT_TYPES, read_output
from tooltrail.wire.openai_responses.reading import ItemReader, read_content

_SPEAKERS: dict[str, Role] = {"user": "user", "system": "system", "developer": "developer"}


def read_history(request: JsonObject) -> Conversation:
    """The input and the tools of a request; its instructions are a system message in front."""
    given = request.get("input")
    items: JsonValue = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(items, list):
        raise InvalidRecordError("the request has no input")
    reader = _HistoryReader(items)
    if instructions := text_in(request.get("instructions")):
        reader.messages.append(Message.of("system", instructions))
    for position, item in enumerate(items):
        reader.take(item, f"input[{position}]")
    return Conversation.of(reader.finish(), read_tools(request))


class _HistoryReader:
    def __init__(self, items: list[JsonValue]) -> None:
        self.messages: list[Message] = []
        self._hosted = hosted_shells(items, in_answer=False)
        self._local_shells: dict[str, str] = {}
        self._turn: ItemReader | None = None
        self._results: list[ResultBlock] = []
        # Calls whose results have something for this format alone.
        self._native_ids: set[str | None] = set()

    def take(self, item: JsonValue, where: str) -> None:
        members = object_in(item)
        role = _SPEAKERS.get(str(members.get("role")))
        if type_of(members) == "message" and role is not None:
            self._end()
            blocks = tuple(read_content(members))
            self.messages.append(message_of_request(NAME, role, blocks))
        elif self._is_output(members):
            self._end_turn()
            result = read_output(members, self._local_shells)
            self._results.append(result)
            if is_for_provider(result):
                self._native_ids.add(result.call_id)
        else:
            self._end_results()
            self._turn = self._turn or ItemReader([], self._hosted)
            self._turn.take(item, where)
            self._remember(members)

    def finish(self) -> list[Message]:
        self._end()
        # What a result says for this format goes back with the call that it answers.
        return with_origins(self.messages, NAME, self._native_ids)

    def _is_output(self, item: JsonObject) -> bool:
        kind = type_of(item)
        if kind == "tool_search_output":
            return item.get("execution") == "client"
        if kind == "shell_call_output" and item.get("call_id") in self._hosted:
            return False
        return kind in OUTPUT_TYPES

    def _remember(self, item: JsonObject) -> None:
        item_id, call_id = text_in(item.get("id")), text_in(item.get("call_id"))
        if type_of(item) == "local_shell_call" and item_id and call_id:
            self._local_shells[item_id] = call_id

    def _end(self) -> None:
        self._end_turn()
        self._end_results()

    def _end_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            blocks = tuple(turn.blocks)
            self.messages.append(message_of_request(NAME, "assistant", blocks))

    def _end_results(self) -> None:
        if self._results:
            self.messages.append(Message(role="tool", blocks=tuple(self._results)))
            self._results = []
