"""Text as every database can store it."""


def storable(text: str) -> str:
    """Text that every database can carry: NUL and lone surrogates become escapes."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
