"""How many tokens a text takes: one estimate, the same for every model."""

BYTES_PER_TOKEN = 4
"""UTF-8 bytes that one token stands for. No tokenizer: the estimate must not depend on a model."""


def text_size(text: str) -> int:
    r"""Bytes of a text in UTF-8, lone surrogates spelled out as `\udxxx`."""
    return len(text.encode("utf-8", "backslashreplace"))


def tokens_of_size(size: int) -> int:
    """Tokens that so many bytes of text take, rounded up."""
    return -(-size // BYTES_PER_TOKEN)


def estimate_tokens(text: str) -> int:
    """Tokens that a text takes: its UTF-8 bytes / 4, rounded up."""
    return tokens_of_size(text_size(text))
