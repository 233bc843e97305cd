"""The limits of text: any id and any name is allowed, and there are no flags."""

import re

from tooltrail.wire.capabilities import Capabilities

NAME = "text-fallback"

_ANY_LENGTH = 1_000_000

_ANYTHING = re.compile(r"(?s:.+)")
"""Any non-empty text; unsendable characters are escaped."""

CAPABILITIES = Capabilities(
    needs_call_ids=False,
    call_id=_ANYTHING,
    call_id_length=_ANY_LENGTH,
    call_id_scope="batch",
    tool_name=_ANYTHING,
    tool_name_length=_ANY_LENGTH,
    names_servers=True,
)
