"""Ollama's native chat, `/api/chat`.

Source: the server's api/types.go of August 2026 and the official client, version 0.6. The client
drops ids on both ways, so requests are to be posted as they are, without it.
"""

from tooltrail.wire.formats import WireFormat, sturdy
from tooltrail.wire.ollama.asking import (
    read_tools,
    write_choice,
    write_structured,
    write_tools,
)
from tooltrail.wire.ollama.limits import CAPABILITIES
from tooltrail.wire.ollama.reading import read_history, read_response
from tooltrail.wire.ollama.streaming import OllamaAssembler
from tooltrail.wire.ollama.usage import USAGE
from tooltrail.wire.ollama.writing import is_result, write_history

FORMAT = sturdy(
    WireFormat(
        name="ollama",
        capabilities=CAPABILITIES,
        read_response=read_response,
        new_assembler=OllamaAssembler,
        read_history=read_history,
        write_history=write_history,
        is_result=is_result,
        write_tools=write_tools,
        read_tools=read_tools,
        write_choice=write_choice,
        write_structured=write_structured,
        usage=USAGE,
    )
)
