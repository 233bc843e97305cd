"""What OpenAI Responses can carry."""

import re

from tooltrail.wire.capabilities import Capabilities

NAME = "openai-responses"

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

CAPABILITIES = Capabilities(
    call_id_length=64,
    tool_name=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    result_media=IMAGE_TYPES | {"application/pdf"},
)
