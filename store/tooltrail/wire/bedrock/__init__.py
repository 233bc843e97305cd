"""Amazon Bedrock's Converse and ConverseStream.

Source: the service model `bedrock-runtime` 2023-09-30 of botocore 1.43. Bytes are base64, as in the
JSON of the API; boto3 accepts and returns `bytes` instead. Events of a stream are the JSON objects
that SDKs return, one for each event, without the binary frames around them.
"""

import re

from tooltrail.wire.bedrock import asking
from tooltrail.wire.bedrock.reading import MEDIA, read_history, read_response
from tooltrail.wire.bedrock.streaming import ConverseAssembler
from tooltrail.wire.bedrock.writing import SPELLING, write_history
from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.formats import WireFormat
from tooltrail.wire.usage import UsageSpelling, usage_of

FORMAT = WireFormat(
    name=asking.NAME,
    capabilities=Capabilities(
        call_id=re.compile(r"[a-zA-Z0-9_.:-]+"),
        tool_name=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
        arguments_are_text=False,
        has_error_flag=True,
        result_media=frozenset(MEDIA),
    ),
    response_reader=read_response,
    new_assembler=ConverseAssembler,
    history_reader=read_history,
    history_writer=write_history,
    is_result=SPELLING.brings_results,
    tools_writer=asking.write_tools,
    tools_reader=asking.read_tools,
    choice_writer=asking.write_choice,
    # `inputTokens` excludes tokens that were read from or written to a cache.
    usage=UsageSpelling(
        usage_of("metadata"),
        ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"),
        ("outputTokens",),
        ("cacheReadInputTokens",),
    ),
)
