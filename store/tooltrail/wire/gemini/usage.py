"""The tokens of generateContent: in `usageMetadata`, of a stream in any of its events.

What a tool of the provider's gave to the model is input that `promptTokenCount` leaves out, and
thoughts are output that `candidatesTokenCount` leaves out. Cached tokens are within the former.
"""

from pydantic import JsonValue

from tooltrail.wire.gemini.parts import camel
from tooltrail.wire.members import JsonObject, object_in
from tooltrail.wire.usage import Counts, TokenCounts, UsageSpelling, total


def _find(event: JsonObject) -> JsonValue:
    return camel(object_in(event.get("usageMetadata") or event.get("usage_metadata")))


def _read(counts: Counts) -> TokenCounts:
    return TokenCounts(
        total(counts, "promptTokenCount", "toolUsePromptTokenCount"),
        total(counts, "candidatesTokenCount", "thoughtsTokenCount"),
        counts.get("cachedContentTokenCount"),
    )


USAGE = UsageSpelling(("usageMetadata", "usage_metadata"), _find, _read)
