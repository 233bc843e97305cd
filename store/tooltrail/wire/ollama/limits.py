"""What Ollama's native chat can carry, and where an answer has its tokens.

The tokens of Ollama's chat: on the line that says `done`, beside the message.

Old servers leave `prompt_eval_count` out when the whole prompt was in their cache.
"""

import sys

from tooltrail.wire.capabilities import ANY_TEXT, Capabilities
from tooltrail.wire.usage import UsageSpelling

NAME = "ollama"

SAFE_INTEGER = 2**53
"""Beyond it the server, which reads numbers as doubles, may round an integer."""

# Ids and names are free text; a message has a list of images, whose type nobody says.
CAPABILITIES = Capabilities(
    needs_call_ids=False,
    call_id=ANY_TEXT,
    call_id_length=sys.maxsize,
    call_id_scope="none",
    tool_name=ANY_TEXT,
    tool_name_length=256,
    arguments_are_text=False,
    result_media=frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"}),
)

USAGE = UsageSpelling(
    ("eval_count", "prompt_eval_count"),
    lambda event: event,
    ("prompt_eval_count",),
    ("eval_count",),
)
