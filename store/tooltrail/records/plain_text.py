"""Makes text storable in every database."""


def storable(text: str) -> str:
    """A copy of a text that every database can store: NUL and lone surrogates become escapes."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
