"""The tokens of Responses: in `usage` of the response, of a stream in the one that ends it."""

from pydantic import JsonValue

from tooltrail.wire.members import JsonObject, object_in
from tooltrail.wire.usage import Counts, TokenCounts, UsageSpelling


def _find(event: JsonObject) -> JsonValue:
    if "response" in event:
        return object_in(event["response"]).get("usage")
    return event.get("usage")


def _read(counts: Counts) -> TokenCounts:
    return TokenCounts(
        counts.get("input_tokens"),
        counts.get("output_tokens"),
        counts.get("input_tokens_details.cached_tokens"),
    )


USAGE = UsageSpelling(("usage", "response"), _find, _read)
