"""What Bedrock Converse can carry, and where an answer has its tokens.

The tokens are in `usage` of an answer, and in the event `metadata` of a stream. `inputTokens`
leaves out what was read from a cache and what was written to one, so all three are added.
"""

import re

from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.usage import UsageSpelling, usage_of

NAME = "bedrock"

_OFFICE = "application/vnd.openxmlformats-officedocument"
MEDIA = {
    **{f"image/{one}": ("image", one) for one in ("gif", "jpeg", "png", "webp")},
    "application/msword": ("document", "doc"),
    "application/pdf": ("document", "pdf"),
    "application/vnd.ms-excel": ("document", "xls"),
    f"{_OFFICE}.spreadsheetml.sheet": ("document", "xlsx"),
    f"{_OFFICE}.wordprocessingml.document": ("document", "docx"),
    "text/csv": ("document", "csv"),
    "text/html": ("document", "html"),
    "text/markdown": ("document", "md"),
    "text/plain": ("document", "txt"),
}
"""The member of a block for each media type, and what the block calls the type."""

CAPABILITIES = Capabilities(
    call_id=re.compile(r"[a-zA-Z0-9_.:-]+"),
    tool_name=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    arguments_are_text=False,
    has_error_flag=True,
    result_media=frozenset(MEDIA),
)

USAGE = UsageSpelling(
    ("usage", "metadata"),
    usage_of("metadata"),
    ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"),
    ("outputTokens",),
    ("cacheReadInputTokens",),
)
