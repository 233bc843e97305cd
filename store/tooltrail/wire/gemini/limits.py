"""What Gemini's generateContent can carry, and where an answer has its tokens.

The tokens of generateContent: in `usageMetadata`, of a stream in any of its events.

What a tool of the provider's gave to the model is input that `promptTokenCount` leaves out, and
thoughts are output that `candidatesTokenCount` leaves out. Cached tokens are within the former.
"""

import re

from pydantic import JsonValue

from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.gemini.parts import camel
from tooltrail.wire.members import JsonObject, object_in
from tooltrail.wire.usage import Counts, TokenCounts, UsageSpelling, total

NAME = "gemini"

CAPABILITIES = Capabilities(
    needs_call_ids=False,
    call_id_length=256,
    call_id_scope="batch",
    tool_name=re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]*"),
    tool_name_length=128,
    arguments_are_text=False,
    has_error_flag=True,
    result_media=frozenset({"image/*", "audio/*", "application/pdf", "text/plain"}),
    marks_empty_output=False,
)


def _find(event: JsonObject) -> JsonValue:
    return camel(object_in(event.get("usageMetadata") or event.get("usage_metadata")))


def _read(counts: Counts) -> TokenCounts:
    return TokenCounts(
        total(counts, "promptTokenCount", "toolUsePromptTokenCount"),
        total(counts, "candidatesTokenCount", "thoughtsTokenCount"),
        counts.get("cachedContentTokenCount"),
    )


USAGE = UsageSpelling(("usageMetadata", "usage_metadata"), _find, _read)
