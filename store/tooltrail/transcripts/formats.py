"""The formats that a transcript is printed in, by name."""

from collections.abc import Callable, Iterator, Mapping
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


class _Formats(Mapping[str, Writer]):
    """The writers by name; each is imported when it is asked for."""

    def __getitem__(self, name: str) -> Writer:
        module = import_module(f"tooltrail.transcripts.{_MODULES[name]}")
        writer: Writer = getattr(module, f"write_{name}")
        return writer

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


FORMATS: Mapping[str, Writer] = _Formats()
"""The formats, by name."""
