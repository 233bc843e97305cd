"""Google Gemini, generateContent.

Source: the types of the official client, version 3. The Interactions API is another one.
"""

from tooltrail.wire.formats import WireFormat, sturdy
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

FORMAT = sturdy(
    WireFormat(
        name=NAME,
        capabilities=CAPABILITIES,
        read_response=read_response,
        new_assembler=ContentAssembler,
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
