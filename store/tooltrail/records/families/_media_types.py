"""Which media types are text that a model can read."""

_SUFFIXES = ("+json", "+xml", "+yaml")
"""Structured syntaxes (RFC 6838, section 4.2.8) that are text whatever is said in them."""

_TEXTUAL = frozenset(
    {
        "application/ecmascript",
        "application/graphql",
        "application/javascript",
        "application/json",
        "application/json-seq",
        "application/json5",
        "application/jsonl",
        "application/sql",
        "application/toml",
        "application/typescript",
        "application/x-javascript",
        "application/x-json",
        "application/x-ndjson",
        "application/x-sh",
        "application/x-toml",
        "application/x-www-form-urlencoded",
        "application/x-yaml",
        "application/xml",
        "application/xml-dtd",
        "application/yaml",
    }
)
"""Types outside of `text/` that have no suffix and are text all the same."""


def is_text_type(media_type: str) -> bool:
    """Whether a media type is one of text; its case and its parameters do not matter."""
    essence = media_type.partition(";")[0].strip().lower()
    return essence.startswith("text/") or essence.endswith(_SUFFIXES) or essence in _TEXTUAL
