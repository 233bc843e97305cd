"""OpenAI Chat Completions, and the many servers that are compatible with it.

Source: the types of the official client, version 3. Deviations of compatible servers are accepted,
and flagged if they matter: a missing index, the same index for all calls, missing or repeated ids,
arguments that are an object.
"""

import re
from functools import partial

from tooltrail.wire._chat.answers import read_response
from tooltrail.wire._chat.streaming import ChatAssembler
from tooltrail.wire._tools import write_openai_choice
from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.formats import WireFormat
from tooltrail.wire.openai_chat import asking
from tooltrail.wire.openai_chat.reading import SPELLING, read_history
from tooltrail.wire.openai_chat.writing import write_history
from tooltrail.wire.usage import UsageSpelling, usage_of

FORMAT = WireFormat(
    name=asking.NAME,
    capabilities=Capabilities(
        # Older models refuse longer ids with `string_above_max_length`.
        call_id_length=40,
        tool_name=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    ),
    response_reader=partial(read_response, SPELLING),
    new_assembler=partial(ChatAssembler, SPELLING),
    history_reader=read_history,
    history_writer=write_history,
    is_result=lambda message: message.get("role") in {"tool", "function"},
    tools_writer=asking.write_tools,
    tools_reader=asking.read_tools,
    choice_writer=partial(write_openai_choice, is_flat=False),
    # Groq has the tokens of a stream in `x_groq`. DeepSeek, Mistral and Moonshot each have
    # another name for cached tokens.
    usage=UsageSpelling(
        usage_of("x_groq"),
        ("prompt_tokens",),
        ("completion_tokens",),
        (
            "prompt_tokens_details.cached_tokens",
            "prompt_cache_hit_tokens",
            "num_cached_tokens",
            "cached_tokens",
        ),
        thoughts="completion_tokens_details.reasoning_tokens",
    ),
)
