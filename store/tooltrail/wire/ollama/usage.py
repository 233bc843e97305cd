"""The tokens of Ollama's chat: on the line that says `done`, beside the message.

Old servers leave `prompt_eval_count` out when the whole prompt was in their cache.
"""

from pydantic import JsonValue

from tooltrail.wire.members import JsonObject
from tooltrail.wire.usage import Counts, TokenCounts, UsageSpelling


def _find(event: JsonObject) -> JsonValue:
    return event


def _read(counts: Counts) -> TokenCounts:
    return TokenCounts(counts.get("prompt_eval_count"), counts.get("eval_count"))


USAGE = UsageSpelling(("eval_count", "prompt_eval_count"), _find, _read)
