"""Assembles Ollama's stream of lines into one answer.

Texts come in pieces. Each call comes complete in one line, which may be the line with `done`. An
answer that was not streamed is a single line.
"""

from pydantic import JsonValue

from tooltrail.wire.members import JsonObject
from tooltrail.wire.ollama.reading import read_answer, read_failure
from tooltrail.wire.responses import ProviderFailure, Response

_JOINED = ("content", "thinking")
_GATHERED = ("tool_calls", "images")


class OllamaAssembler:
    """Assembles the lines of one answer."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._lists: dict[str, list[JsonValue]] = {}
        self._rest: JsonObject = {}
        self._last: JsonObject = {}
        self._failure: ProviderFailure | None = None
        self._has_message = False
        self._unread: list[str] = []

    def feed(self, event: JsonObject) -> None:
        """Add one line."""
        if "error" in event:
            self._failure = self._failure or read_failure(event)
        message = event.get("message")
        if self._last.get("done") is True:
            self._unread.append("a line follows the one that says that the answer is done")
        elif "done" in event or not self._last:
            self._last = event
        if isinstance(message, dict):
            self._take(message)
        elif message is not None:
            self._unread.append("the message of a line is not an object")
        elif "error" not in event and event.get("done") is not True:
            self._unread.append("a line has no message")

    def _take(self, message: JsonObject) -> None:
        self._has_message = True
        for name, value in message.items():
            if name in _JOINED and isinstance(value, str):
                self._texts.setdefault(name, []).append(value)
            elif name in _GATHERED and isinstance(value, list):
                self._lists.setdefault(name, []).extend(value)
            elif value is not None:
                self._rest[name] = value

    def finish(self, *, is_done: bool = False) -> Response:
        """Return the answer; if its end was not received, its calls are incomplete."""
        if not self._has_message:
            return Response.of((), self._failure, self._unread)
        texts = {name: "".join(pieces) for name, pieces in self._texts.items()}
        native: JsonObject = {**texts, **self._lists, **self._rest}
        answer = read_answer(native, self._last, self._failure, is_done=is_done)
        return answer.with_more(unread=self._unread)
