"""What Chat Completions can carry."""

import re

from tooltrail.wire.capabilities import Capabilities

NAME = "openai"

# Forty characters: older models refuse longer ids with `string_above_max_length`.
CAPABILITIES = Capabilities(
    call_id_length=40,
    tool_name=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
)
