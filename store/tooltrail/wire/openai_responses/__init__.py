"""OpenAI Responses: a flat list of typed items instead of messages with calls.

Source: the types of the official client, version 3. Every call has two ids: `call_id` pairs it with
its output; the id of its item belongs to the platform and is sent only to it. Deviations of other
servers are accepted, and flagged or reported.
"""

from functools import partial

from tooltrail.wire._tools import write_openai_choice
from tooltrail.wire.formats import WireFormat
from tooltrail.wire.openai_responses import asking
from tooltrail.wire.openai_responses.limits import CAPABILITIES, NAME, USAGE
from tooltrail.wire.openai_responses.reading import read_history, read_response
from tooltrail.wire.openai_responses.streaming import ResponsesAssembler
from tooltrail.wire.openai_responses.writing import is_result, write_history

FORMAT = WireFormat(
    name=NAME,
    capabilities=CAPABILITIES,
    response_reader=read_response,
    new_assembler=ResponsesAssembler,
    history_reader=read_history,
    history_writer=write_history,
    is_result=is_result,
    tools_writer=asking.write_tools,
    tools_reader=asking.read_tools,
    choice_writer=partial(write_openai_choice, is_flat=True),
    usage=USAGE,
)
