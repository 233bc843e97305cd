"""The limits of OpenAI Responses, and where an answer has its token counts.

The counts are in `usage` of the response. In a stream, they are in the response that the last event
contains.
"""

import re

from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.usage import UsageSpelling, usage_of

NAME = "openai-responses"

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

CAPABILITIES = Capabilities(
    server_field="any",
    tool_name=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    result_media=IMAGE_TYPES | {"application/pdf"},
)

USAGE = UsageSpelling(
    usage_of("response"),
    ("input_tokens",),
    ("output_tokens",),
    ("input_tokens_details.cached_tokens",),
)
