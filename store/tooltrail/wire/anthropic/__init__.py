"""Anthropic Messages.

Source: the types of the official client, version 2, which uses revision 2026-10-21 of the API;
answers of revision 2023-06-01 are read as well.
"""

import re

from tooltrail.wire.anthropic import asking
from tooltrail.wire.anthropic.reading import read_history, read_response
from tooltrail.wire.anthropic.streaming import MessagesAssembler
from tooltrail.wire.anthropic.writing import DOCUMENTS, IMAGES, SPELLING, write_history
from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.formats import WireFormat
from tooltrail.wire.usage import UsageSpelling, usage_of

FORMAT = WireFormat(
    name=asking.NAME,
    capabilities=Capabilities(
        call_id=re.compile(r"[a-zA-Z0-9_-]+"),
        # Newer servers accept names of 128 characters, older ones of 64.
        tool_name=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
        server_field="own",
        arguments_are_text=False,
        has_error_flag=True,
        result_media=IMAGES | DOCUMENTS,
    ),
    response_reader=read_response,
    new_assembler=MessagesAssembler,
    history_reader=read_history,
    history_writer=write_history,
    is_result=SPELLING.brings_results,
    tools_writer=asking.write_tools,
    tools_reader=asking.read_tools,
    choice_writer=asking.write_choice,
    # `input_tokens` counts only tokens after the last cache breakpoint; tokens read from or written
    # to a cache are input too ("Prompt caching", "Tracking cache performance").
    usage=UsageSpelling(
        usage_of("message"),
        ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
        ("output_tokens",),
        ("cache_read_input_tokens",),
    ),
)
