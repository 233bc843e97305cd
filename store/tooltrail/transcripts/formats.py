"""The formats that a transcript is printed in, by name."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module

from tooltrail.transcripts.transcript import Transcript

Writer = Callable[[Transcript], Iterator[str]]
"""Gives a transcript piece by piece; the pieces joined are the document."""

_MODULES: Mapping[str, str] = {
    "text": "_text",
    "markdown": "_markdown",
    "json": "_json",
    "jsonl": "_json",
}


def _write(name: str, transcript: Transcript) -> Iterator[str]:
    # Imported here: a format may need the models of messages, which take long to import.
    module = import_module(f"tooltrail.transcripts.{_MODULES[name]}")
    writer: Writer = getattr(module, f"write_{name}")
    return writer(transcript)


FORMATS: Mapping[str, Writer] = {name: partial(_write, name) for name in _MODULES}
"""The formats, by name."""
