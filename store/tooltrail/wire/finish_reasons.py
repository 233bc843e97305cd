"""The finish reasons of all formats, by what they say about the answer."""

from typing import Final, Literal

End = Literal["refused", "filtered", "cut"]
"""The model refused; a filter of the provider stopped the answer; a token limit was reached."""

_REFUSED: Final = ("refusal",)
_FILTERED: Final = (
    # OpenAI
    "content_filter",
    # Bedrock
    "content_filtered",
    "guardrail_intervened",
    # Gemini
    "BLOCKLIST",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "IMAGE_SAFETY",
    "JAILBREAK",
    "MODEL_ARMOR",
    "PROHIBITED_CONTENT",
    "RECITATION",
    "SAFETY",
    "SPII",
)
_CUT: Final = (
    # OpenAI
    "length",
    "max_output_tokens",
    # Anthropic and Bedrock
    "max_tokens",
    "model_context_window_exceeded",
    # Gemini and Cohere
    "MAX_TOKENS",
)
_ENDS: Final[dict[str | None, End]] = {
    **dict.fromkeys(_REFUSED, "refused"),
    **dict.fromkeys(_FILTERED, "filtered"),
    **dict.fromkeys(_CUT, "cut"),
}


def end_of(finish_reason: str | None) -> End | None:
    """What a finish reason says about an incomplete answer; None if it is not known.

    After a known reason, the last call of the answer may be incomplete, too.
    """
    return _ENDS.get(finish_reason)


def is_refusal(reason: str | None) -> bool:
    """Whether the model or a filter refused, by a finish reason or the kind of an error."""
    return end_of(reason) in {"refused", "filtered"}
