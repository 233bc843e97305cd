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
from tooltrail.wire.formats import WireFormat

FORMAT = WireFormat(
    name=NAME,
    capabilities=CAPABILITIES,
    response_reader=read_response,
    new_assembler=MessagesAssembler,
    history_reader=read_history,
    history_writer=write_history,
    is_result=is_result,
    tools_writer=write_tools,
    tools_reader=read_tools,
    choice_writer=write_choice,
    shape_writer=write_structured,
    usage=USAGE,
)
