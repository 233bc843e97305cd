"""Ollama's native chat, `/api/chat`.

Source: the server's api/types.go of August 2026 and the official client, version 0.6. The client
drops ids on both ways, so requests are to be posted as they are, without it.
"""

from tooltrail.wire.formats import WireFormat
from tooltrail.wire.ollama import asking
from tooltrail.wire.ollama.limits import CAPABILITIES, NAME, USAGE
from tooltrail.wire.ollama.reading import read_history, read_response
from tooltrail.wire.ollama.streaming import OllamaAssembler
from tooltrail.wire.ollama.writing import is_result, write_history

FORMAT = WireFormat(
    name=NAME,
    capabilities=CAPABILITIES,
    response_reader=read_response,
    new_assembler=OllamaAssembler,
    history_reader=read_history,
    history_writer=write_history,
    is_result=is_result,
    tools_writer=asking.write_tools,
    tools_reader=asking.read_tools,
    choice_writer=None,
    usage=USAGE,
)
