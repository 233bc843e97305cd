"""Cohere's chat in version 2 of its API, `/v2/chat`.

Source: the types of the official client, version 7, and docs.cohere.com: the references of Chat,
Chat with Streaming, and errors.
"""

import re
import sys

from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.cohere import asking
from tooltrail.wire.cohere.reading import read_history, read_response
from tooltrail.wire.cohere.streaming import CohereAssembler
from tooltrail.wire.cohere.writing import write_history
from tooltrail.wire.formats import WireFormat
from tooltrail.wire.usage import UsageSpelling, usage_of

FORMAT = WireFormat(
    name=asking.NAME,
    capabilities=Capabilities(
        # The server's own ids are the name of the tool followed by some characters.
        call_id_length=sys.maxsize,
        # No hyphen, and no digit at the beginning (docs.cohere.com/reference/errors).
        tool_name=re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*"),
    ),
    response_reader=read_response,
    new_assembler=CohereAssembler,
    history_reader=read_history,
    history_writer=write_history,
    is_result=lambda message: message.get("role") == "tool",
    tools_writer=asking.write_tools,
    tools_reader=asking.read_tools,
    choice_writer=asking.write_choice,
    # `billed_units` exclude the text that Cohere adds to a prompt, so `tokens` are read.
    usage=UsageSpelling(
        usage_of("delta"),
        ("tokens.input_tokens",),
        ("tokens.output_tokens",),
        ("cached_tokens",),
    ),
)
