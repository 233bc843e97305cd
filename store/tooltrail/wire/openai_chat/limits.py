"""What Chat Completions can carry, and where an answer has its tokens.

The tokens of Chat Completions: in `usage`, of a stream in its last chunk, which has no choices.

A stream tells them when `stream_options.include_usage` asks for it; some servers do unasked, in
every chunk. Groq has them in `x_groq` there. What came out of a cache has a name of its own with
DeepSeek, Mistral and Moonshot.
"""

import re

from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.usage import UsageSpelling, usage_of

NAME = "openai"

# Forty characters: older models refuse longer ids with `string_above_max_length`.
CAPABILITIES = Capabilities(
    call_id_length=40,
    tool_name=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
)

USAGE = UsageSpelling(
    ("usage", "x_groq"),
    usage_of("x_groq"),
    ("prompt_tokens",),
    ("completion_tokens",),
    (
        "prompt_tokens_details.cached_tokens",
        "prompt_cache_hit_tokens",
        "num_cached_tokens",
        "cached_tokens",
    ),
    thoughts="completion_tokens_details.reasoning_tokens",
)
