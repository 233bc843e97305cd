"""Estimates the tokens of a text; the estimate is the same for every model."""

BYTES_PER_TOKEN = 4
"""UTF-8 bytes per token. No tokenizer is used: the estimate must not depend on a model."""


def text_size(text: str) -> int:
    r"""The bytes of a text in UTF-8, with lone surrogates written as `\udxxx`."""
    return len(text.encode("utf-8", "backslashreplace"))


def tokens_of_size(size: int) -> int:
    """The tokens of a text of `size` bytes, rounded up."""
    return -(-size // BYTES_PER_TOKEN)


def estimate_tokens(text: str) -> int:
    """The tokens of a text: its UTF-8 bytes / 4, rounded up."""
    return tokens_of_size(text_size(text))
