"""Ollama's native chat, `/api/chat`.

Source: the server's api/types.go of August 2026 and the official client, version 0.6. The client
drops ids in both directions, so post requests directly, without the client.
"""

import sys

from tooltrail.wire.capabilities import ANY_TEXT, Capabilities
from tooltrail.wire.formats import WireFormat
from tooltrail.wire.ollama import asking
from tooltrail.wire.ollama.reading import read_history, read_response
from tooltrail.wire.ollama.streaming import OllamaAssembler
from tooltrail.wire.ollama.writing import write_history
from tooltrail.wire.usage import UsageSpelling

FORMAT = WireFormat(
    name=asking.NAME,
    # Ids and names are free text; a message has a list of images without types.
    capabilities=Capabilities(
        needs_call_ids=False,
        call_id_length=sys.maxsize,
        call_id_scope="none",
        tool_name=ANY_TEXT,
        tool_name_length=256,
        arguments_are_text=False,
        result_media=frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"}),
    ),
    response_reader=read_response,
    new_assembler=OllamaAssembler,
    history_reader=read_history,
    history_writer=write_history,
    is_result=lambda message: message.get("role") == "tool",
    tools_writer=asking.write_tools,
    tools_reader=asking.read_tools,
    choice_writer=None,
    # Old servers leave out `prompt_eval_count` if the complete prompt was in their cache.
    usage=UsageSpelling(
        lambda event: {name: event[name] for name in event if name.endswith("eval_count")},
        ("prompt_eval_count",),
        ("eval_count",),
    ),
)
