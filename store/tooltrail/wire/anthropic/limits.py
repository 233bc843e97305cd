"""What Anthropic Messages can carry."""

import re

from tooltrail.wire.capabilities import Capabilities

NAME = "anthropic"

IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
DOCUMENTS = frozenset({"application/pdf", "text/plain"})

# Newer servers take names of 128 characters, older ones of 64.
CAPABILITIES = Capabilities(
    call_id=re.compile(r"[a-zA-Z0-9_-]+"),
    tool_name=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    arguments_are_text=False,
    has_error_flag=True,
    result_media=IMAGES | DOCUMENTS,
    takes_empty_output=False,
)
