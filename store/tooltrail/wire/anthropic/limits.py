"""What Anthropic Messages can carry, and where an answer has its tokens.

The tokens of Messages: in `usage` of the message, of a stream in its first event and at its end.

`message_delta` tells them anew, all up to there: they are not to be added to those of
`message_start`. `input_tokens` are those behind the last point of caching alone. What was read from
a cache and what was written to one stands beside it and is input too, so all three are added
(Anthropic, "Prompt caching", "Tracking cache performance").
"""

import re

from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.usage import UsageSpelling, usage_of

NAME = "anthropic"

IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
DOCUMENTS = frozenset({"application/pdf", "text/plain"})

# Newer servers take names of 128 characters, older ones of 64.
CAPABILITIES = Capabilities(
    call_id=re.compile(r"[a-zA-Z0-9_-]+"),
    tool_name=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    server_field="own",
    arguments_are_text=False,
    has_error_flag=True,
    result_media=IMAGES | DOCUMENTS,
)

USAGE = UsageSpelling(
    ("usage", "message"),
    usage_of("message"),
    ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    ("output_tokens",),
    ("cache_read_input_tokens",),
)
