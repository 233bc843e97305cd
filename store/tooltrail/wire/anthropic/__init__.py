"""Anthropic Messages.

Source: the types of the official client, version 2, which speaks revision 2026-10-21 of the API;
answers of 2023-06-01 are read as well.
"""

from tooltrail.wire.anthropic import asking
from tooltrail.wire.anthropic.limits import CAPABILITIES, NAME, USAGE
from tooltrail.wire.anthropic.reading import read_history, read_response
from tooltrail.wire.anthropic.streaming import MessagesAssembler
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
    tools_writer=asking.write_tools,
    tools_reader=asking.read_tools,
    choice_writer=asking.write_choice,
    usage=USAGE,
)
