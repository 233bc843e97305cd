"""Google Gemini, generateContent.

Source: the types of the official client, version 3. The Interactions API is another format.
"""

import re

from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.formats import WireFormat
from tooltrail.wire.gemini import asking
from tooltrail.wire.gemini.parts import camel
from tooltrail.wire.gemini.reading import read_history, read_response
from tooltrail.wire.gemini.streaming import ContentAssembler
from tooltrail.wire.gemini.writing import SPELLING, write_history
from tooltrail.wire.members import object_in
from tooltrail.wire.usage import UsageSpelling

FORMAT = WireFormat(
    name=asking.NAME,
    capabilities=Capabilities(
        needs_call_ids=False,
        call_id_length=256,
        call_id_scope="batch",
        tool_name=re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]*"),
        tool_name_length=128,
        arguments_are_text=False,
        has_error_flag=True,
        result_media=frozenset({"image/*", "audio/*", "application/pdf", "text/plain"}),
        marks_empty_output=False,
    ),
    response_reader=read_response,
    new_assembler=ContentAssembler,
    history_reader=read_history,
    history_writer=write_history,
    is_result=SPELLING.brings_results,
    tools_writer=asking.write_tools,
    tools_reader=asking.read_tools,
    choice_writer=asking.write_choice,
    # `promptTokenCount` excludes input from the provider's own tools, and `candidatesTokenCount`
    # excludes thoughts.
    usage=UsageSpelling(
        lambda event: camel(object_in(event.get("usageMetadata") or event.get("usage_metadata"))),
        ("promptTokenCount", "toolUsePromptTokenCount"),
        ("candidatesTokenCount", "thoughtsTokenCount"),
        ("cachedContentTokenCount",),
    ),
)
