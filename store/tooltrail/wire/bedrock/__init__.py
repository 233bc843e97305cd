"""Amazon Bedrock's Converse and ConverseStream.

Source: the service model `bedrock-runtime` 2023-09-30 of botocore 1.43. Bytes are base64, as in the
JSON of the API; boto3 takes and gives `bytes` in their place. Events of a stream are the JSON
objects that SDKs give, one for each event, without the binary frames around them.
"""

from tooltrail.wire.bedrock import asking
from tooltrail.wire.bedrock.limits import CAPABILITIES, NAME, USAGE
from tooltrail.wire.bedrock.reading import read_history, read_response
from tooltrail.wire.bedrock.streaming import ConverseAssembler
from tooltrail.wire.bedrock.writing import is_result, write_history
from tooltrail.wire.formats import WireFormat

FORMAT = WireFormat(
    name=NAME,
    capabilities=CAPABILITIES,
    response_reader=read_response,
    new_assembler=ConverseAssembler,
    history_reader=read_history,
    history_writer=write_history,
    is_result=is_result,
    tools_writer=asking.write_tools,
    tools_reader=asking.read_tools,
    choice_writer=asking.write_choice,
    usage=USAGE,
)
