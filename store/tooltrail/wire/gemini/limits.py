"""What Gemini's generateContent can carry, and where an answer has its tokens.

The tokens of generateContent: in `usageMetadata`, of a stream in any of its events.

What a tool of the provider's gave to the model is input that `promptTokenCount` leaves out, and
thoughts are output that `candidatesTokenCount` leaves out. Cached tokens are within the former.
"""

import re

from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.gemini.parts import camel
from tooltrail.wire.members import object_in
from tooltrail.wire.usage import UsageSpelling

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

USAGE = UsageSpelling(
    ("usageMetadata", "usage_metadata"),
    lambda event: camel(object_in(event.get("usageMetadata") or event.get("usage_metadata"))),
    ("promptTokenCount", "toolUsePromptTokenCount"),
    ("candidatesTokenCount", "thoughtsTokenCount"),
    ("cachedContentTokenCount",),
)
