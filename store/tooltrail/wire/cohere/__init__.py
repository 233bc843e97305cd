"""Cohere's chat of the API version 2, `/v2/chat`.

Source: the types of the official client, version 7, and docs.cohere.com: the references of Chat, of
Chat with Streaming and of errors.
"""

from tooltrail.wire.cohere import asking
from tooltrail.wire.cohere.limits import CAPABILITIES, NAME, USAGE
from tooltrail.wire.cohere.reading import read_history, read_response
from tooltrail.wire.cohere.streaming import CohereAssembler
from tooltrail.wire.cohere.writing import is_result, write_history
from tooltrail.wire.formats import WireFormat

FORMAT = WireFormat(
    name=NAME,
    capabilities=CAPABILITIES,
    response_reader=read_response,
    new_assembler=CohereAssembler,
    history_reader=read_history,
    history_writer=write_history,
    is_result=is_result,
    tools_writer=asking.write_tools,
    tools_reader=asking.read_tools,
    choice_writer=asking.write_choice,
    usage=USAGE,
)
