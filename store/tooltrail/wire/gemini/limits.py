"""What Gemini's generateContent can carry."""

import re

from tooltrail.wire.capabilities import Capabilities

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
