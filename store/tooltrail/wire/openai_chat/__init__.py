"""OpenAI Chat Completions, and the many servers that speak it.

Source: the types of the official client, version 3. What compatible servers do differently is taken
as it comes, and flagged where it matters: no index, the same index for all calls, ids that are
missing or repeated, arguments that are an object.
"""

from functools import partial

from tooltrail.wire._chat.answers import read_response
from tooltrail.wire._chat.streaming import ChatAssembler
from tooltrail.wire._tools import write_openai_choice
from tooltrail.wire.formats import WireFormat
from tooltrail.wire.openai_chat import asking
from tooltrail.wire.openai_chat.limits import CAPABILITIES, NAME, USAGE
from tooltrail.wire.openai_chat.reading import SPELLING, read_history
from tooltrail.wire.openai_chat.writing import is_result, write_history

FORMAT = WireFormat(
    name=NAME,
    capabilities=CAPABILITIES,
    response_reader=partial(read_response, SPELLING),
    new_assembler=partial(ChatAssembler, SPELLING),
    history_reader=read_history,
    history_writer=write_history,
    is_result=is_result,
    tools_writer=asking.write_tools,
    tools_reader=asking.read_tools,
    choice_writer=partial(write_openai_choice, is_flat=False),
    usage=USAGE,
)
