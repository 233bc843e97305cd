"""The tokens of Messages: in `usage` of the message, of a stream in its first event and at its end.

`message_delta` tells them anew, all up to there: they are not to be added to those of
`message_start`. `input_tokens` are those behind the last point of caching alone. What was read from
a cache and what was written to one stands beside it and is input too, so all three are added
(Anthropic, "Prompt caching", "Tracking cache performance").
"""

from pydantic import JsonValue

from tooltrail.wire.members import JsonObject, object_in
from tooltrail.wire.usage import Counts, TokenCounts, UsageSpelling, total

_READ = "cache_read_input_tokens"
_INPUT = ("input_tokens", "cache_creation_input_tokens", _READ)


def _find(event: JsonObject) -> JsonValue:
    if "message" in event:
        return object_in(event["message"]).get("usage")
    return event.get("usage")


def _read(counts: Counts) -> TokenCounts:
    return TokenCounts(total(counts, *_INPUT), counts.get("output_tokens"), counts.get(_READ))


USAGE = UsageSpelling(("usage", "message"), _find, _read)
