"""What Cohere's chat can carry, and where an answer has its tokens.

The tokens of Cohere's chat: in `usage`, of a stream in the `delta` of its last event. Those of
`billed_units` leave out what Cohere adds to a prompt, so `tokens` are the ones that count.
"""

import re
import sys

from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.usage import UsageSpelling, usage_of

NAME = "cohere"

# The server's own ids are the name of the tool and some characters more, so they may be long. A
# name has no hyphen and no digit in front (docs.cohere.com/reference/errors).
CAPABILITIES = Capabilities(
    call_id_length=sys.maxsize,
    tool_name=re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*"),
)

USAGE = UsageSpelling(
    ("usage", "delta"),
    usage_of("delta"),
    ("tokens.input_tokens",),
    ("tokens.output_tokens",),
    ("cached_tokens",),
)
