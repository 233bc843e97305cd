"""What the Responses API can carry."""

import re

from tooltrail.wire.capabilities import Capabilities

NAME = "openai-responses"

CAPABILITIES = Capabilities(
    call_id_length=64,
    tool_name=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    result_media=frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"}),
)
