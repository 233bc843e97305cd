"""What Chat Completions can carry, and where an answer has its tokens.

The tokens of Chat Completions: in `usage`, of a stream in its last chunk, which has no choices.

A stream tells them when `stream_options.include_usage` asks for it; some servers do unasked, in
every chunk. Groq has them in `x_groq` there. What came out of a cache has a name of its own with
DeepSeek, Mistral and Moonshot.
"""

import re

from pydantic import JsonValue

from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.members import JsonObject, object_in
from tooltrail.wire.usage import Counts, TokenCounts, UsageSpelling, first, total

NAME = "openai"

# Forty characters: older models refuse longer ids with `string_above_max_length`.
CAPABILITIES = Capabilities(
    call_id_length=40,
    tool_name=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
)

_THOUGHTS = "completion_tokens_details.reasoning_tokens"
_OUTPUT = ("completion_tokens", _THOUGHTS)
_CACHED = (
    "prompt_tokens_details.cached_tokens",
    "prompt_cache_hit_tokens",
    "num_cached_tokens",
    "cached_tokens",
)


def _find(event: JsonObject) -> JsonValue:
    usage = event.get("usage")
    if usage or "x_groq" not in event:
        return usage
    return object_in(event["x_groq"]).get("usage")


def _read(counts: Counts) -> TokenCounts:
    said = counts.get("completion_tokens")
    thought = counts.get(_THOUGHTS)
    # xAI counts thoughts beside the answer, all others within it; only the sum tells which.
    if thought and counts.get("total_tokens") == total(counts, "prompt_tokens", *_OUTPUT):
        said = total(counts, *_OUTPUT)
    return TokenCounts(counts.get("prompt_tokens"), said, first(counts, *_CACHED))


USAGE = UsageSpelling(("usage", "x_groq"), _find, _read)
