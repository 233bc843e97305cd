"""The formats of a transcript, by name."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module

from tooltrail.transcripts.transcript import Transcript

Writer = Callable[[Transcript], Iterator[str]]
"""Yields the document of a transcript in pieces."""

_MODULES: Mapping[str, str] = {
    "text": "_text",
    "markdown": "_markdown",
    "json": "_json",
    "jsonl": "_json",
}


def _write(name: str, transcript: Transcript) -> Iterator[str]:
    # Imported here, since a format can need the models of messages, which are slow to import.
    module = import_module(f"tooltrail.transcripts.{_MODULES[name]}")
    writer: Writer = getattr(module, f"write_{name}")
    return writer(transcript)


FORMATS: Mapping[str, Writer] = {name: partial(_write, name) for name in _MODULES}
"""The writers of the formats, by name."""
