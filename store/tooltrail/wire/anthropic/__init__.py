"""Anthropic Messages.

Source: the types of the official client, version 2, which speaks revision 2026-10-21 of the API;
answers of 2023-06-01 are read as well.
"""

from tooltrail.wire.anthropic.asking import (
    read_tools,
    write_choice,
    write_structured,
    write_tools,
)
from tooltrail.wire.anthropic.limits import CAPABILITIES, NAME
from tooltrail.wire.anthropic.reading import read_history, read_response
from tooltrail.wire.anthropic.streaming import MessagesAssembler
from tooltrail.wire.anthropic.usage import USAGE
from tooltrail.wire.anthropic.writing import is_result, write_history
from tooltrail.wire.formats import WireFormat, sturdy

FORMAT = sturdy(
    WireFormat(
        name=NAME,
        capabilities=CAPABILITIES,
        read_response=read_response,
        new_assembler=MessagesAssembler,
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
