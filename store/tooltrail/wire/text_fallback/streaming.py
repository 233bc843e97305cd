"""Answers of text as a stream: in the shape of a chat, or in events that have a text each.

A call in text is known only when its end was seen, and whether it stands in a code block only from
what stands before it; so the text is put together first, and read as a whole.
"""

from tooltrail.wire._chat.streaming import ChatAssembler, Choice
from tooltrail.wire.members import JsonObject
from tooltrail.wire.responses import Response
from tooltrail.wire.text_fallback.family import TextFamily
from tooltrail.wire.text_fallback.reading import answer_of_text, spelling_of


class TextAssembler:
    """Puts the events of one answer together."""

    def __init__(self, family: TextFamily) -> None:
        spelling = spelling_of(family)
        self._chat = ChatAssembler(spelling)
        self._text = Choice(spelling.is_part)
        self._texts: list[JsonObject] = []

    def feed(self, event: JsonObject) -> None:
        """Take one event."""
        self._chat.feed(event)
        if event.get("choices") is None and "content" in event:
            self._texts.append(event)
            self._text.take(event)

    def finish(self, *, is_done: bool = False) -> Response:
        """The answer; calls of one that did not come to its end are incomplete."""
        if not self._texts:
            return self._chat.finish(is_done=is_done)
        # As servers stream that complete a prompt.
        self._chat.feed(answer_of_text(self._text.native()))
        answer = self._chat.finish(is_done=is_done)
        # One event alone may be an answer that is not streamed; it says so when it is not the last.
        is_last = self._texts[-1].get("stop", len(self._texts) == 1) is not False
        unread = [*self._text.unread()]
        if not (is_last or is_done):
            unread.append("the answer does not say that it is done")
        return answer.with_more(unread=unread)
