"""Google Gemini, generateContent.

Source: the types of the official client, version 3. The Interactions API is another one.
"""

from tooltrail.wire.formats import WireFormat
from tooltrail.wire.gemini import asking
from tooltrail.wire.gemini.limits import CAPABILITIES, NAME, USAGE
from tooltrail.wire.gemini.reading import read_history, read_response
from tooltrail.wire.gemini.streaming import ContentAssembler
from tooltrail.wire.gemini.writing import is_result, write_history

FORMAT = WireFormat(
    name=NAME,
    capabilities=CAPABILITIES,
    response_reader=read_response,
    new_assembler=ContentAssembler,
    history_reader=read_history,
    history_writer=write_history,
    is_result=is_result,
    tools_writer=asking.write_tools,
    tools_reader=asking.read_tools,
    choice_writer=asking.write_choice,
    usage=USAGE,
)
