"""Google Gemini, generateContent.

Source: the types of the official client, version 3. The Interactions API is another one.
"""

from tooltrail.wire.formats import WireFormat
from tooltrail.wire.gemini.asking import (
    read_tools,
    write_choice,
    write_structured,
    write_tools,
)
from tooltrail.wire.gemini.limits import CAPABILITIES, NAME
from tooltrail.wire.gemini.reading import read_history, read_response
from tooltrail.wire.gemini.streaming import ContentAssembler
from tooltrail.wire.gemini.usage import USAGE
from tooltrail.wire.gemini.writing import is_result, write_history

FORMAT = WireFormat(
    name=NAME,
    capabilities=CAPABILITIES,
    response_reader=read_response,
    new_assembler=ContentAssembler,
    history_reader=read_history,
    history_writer=write_history,
    is_result=is_result,
    tools_writer=write_tools,
    tools_reader=read_tools,
    choice_writer=write_choice,
    shape_writer=write_structured,
    usage=USAGE,
)
