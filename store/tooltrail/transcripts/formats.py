"""The formats that a transcript is printed in, by name."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from tooltrail.transcripts._json import write_json, write_jsonl
from tooltrail.transcripts._markdown import write_markdown
from tooltrail.transcripts._text import write_text
from tooltrail.transcripts.transcript import Transcript

Writer = Callable[[Transcript], Iterator[str]]
"""Gives a transcript piece by piece; the pieces joined are the document."""

FORMATS: Mapping[str, Writer] = MappingProxyType(
    {"text": write_text, "markdown": write_markdown, "json": write_json, "jsonl": write_jsonl}
)
