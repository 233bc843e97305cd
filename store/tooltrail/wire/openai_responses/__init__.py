"""OpenAI Responses: a flat list of typed items instead of messages with calls.

Source: the types of the official client, version 3. Every call has two ids: `call_id` pairs it with
its output; the id of its item belongs to the platform and is sent only to it. Deviations of other
servers are accepted, and flagged or reported.
"""

import re
from functools import partial

from tooltrail.wire._tools import write_openai_choice
from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.formats import WireFormat
from tooltrail.wire.openai_responses import asking
from tooltrail.wire.openai_responses.parts import IMAGE_TYPES
from tooltrail.wire.openai_responses.reading import read_history, read_response
from tooltrail.wire.openai_responses.streaming import ResponsesAssembler
from tooltrail.wire.openai_responses.writing import is_result, write_history
from tooltrail.wire.usage import UsageSpelling, usage_of

FORMAT = WireFormat(
    name=asking.NAME,
    capabilities=Capabilities(
        server_field="any",
        tool_name=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
        result_media=IMAGE_TYPES | {"application/pdf"},
    ),
    response_reader=read_response,
    new_assembler=ResponsesAssembler,
    history_reader=read_history,
    history_writer=write_history,
    is_result=is_result,
    tools_writer=asking.write_tools,
    tools_reader=asking.read_tools,
    choice_writer=partial(write_openai_choice, is_flat=True),
    # In a stream, the last event contains the response with its counts.
    usage=UsageSpelling(
        usage_of("response"),
        ("input_tokens",),
        ("output_tokens",),
        ("input_tokens_details.cached_tokens",),
    ),
)
