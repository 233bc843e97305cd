"""Stored documents with references instead of parts that are stored elsewhere in the same row.

A canonical result mostly repeats the receipt, and a complete output describes streams that its fact
describes, too. So a long text of the receipt is replaced by its offset and size, and a stream by
its number. `canonical_json` escapes a `$` at the start of foreign keys, so a key of this form is
always ours.

    {"$tooltrail.receipt":[OFFSET,SIZE]}    a text: SIZE bytes of the receipt from byte OFFSET on
    {"$tooltrail.stream":N}                 stream N of the fact, without the place of its bytes
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from tooltrail.records.canonical_json import encode_simple
from tooltrail.records.command_documents import STREAM_MEMBERS, stream_members

if TYPE_CHECKING:
    from tooltrail.records.facts import StreamFact

_ReadText: TypeAlias = Callable[[str, int], tuple[str, int]]

_PREFIX: Final = '{"$tooltrail.'
_read_text: Final = cast("_ReadText", vars(json.decoder)["scanstring"])
"""Reads a JSON string behind its first quote; returns the text and the offset behind it. Python's
type stubs lack this function."""

_RECEIPT: Final = re.compile(r'\{"\$tooltrail\.receipt":\[(\d+),(\d+)\]\}')
_STREAM: Final = re.compile(r'\{"\$tooltrail\.stream":(\d+)\}')
_MIN_CHARS: Final = 64
"""Shortest text to replace, in characters: for less, a reference saves nothing."""


def has_references(document: str) -> bool:
    """Whether a document has references, or foreign text that looks like a reference."""
    return _PREFIX in document


def refers_to_receipt(canonical: str) -> bool:
    """Whether a canonical result has references into the receipt."""
    return _RECEIPT.search(canonical) is not None


def shorten_canonical(canonical: str, receipt: bytes) -> str:
    """Replace long texts of a canonical result by references into the receipt."""
    pieces, end, copied = list[str](), 0, 0
    with suppress(ValueError):  # not JSON: what follows stays as it is
        while (begin := canonical.find('"', end)) >= 0:
            text, end = _read_text(canonical, begin + 1)
            if end - begin < _MIN_CHARS or canonical.startswith(":", end):
                continue
            data = text.encode("utf-8", "surrogatepass")
            if (offset := receipt.find(data)) >= 0:
                reference = f'{{"$tooltrail.receipt":[{offset},{len(data)}]}}'
                pieces += canonical[copied:begin], reference
                copied = end
    return "".join([*pieces, canonical[copied:]])


def expand_canonical(canonical: str, receipt: bytes) -> str:
    """The reverse of `shorten_canonical`."""

    def text(found: re.Match[str]) -> str:
        offset, size = int(found[1]), int(found[2])
        return encode_basestring(receipt[offset : offset + size].decode("utf-8", "replace"))

    return _RECEIPT.sub(text, canonical)


def shorten_output(document: str, streams: Sequence["StreamFact"]) -> str:
    """Replace the streams of a complete output by their numbers."""
    for n, stream in enumerate(streams):
        spelled = _spelled(stream_members(stream))
        document = document.replace(spelled, f'{{"$tooltrail.stream":{n}}}', 1)
    return document


def expand_output(document: str, streams: Sequence[Mapping[str, Any]]) -> str:
    """The reverse of `shorten_output`; `streams` has the members of each stream in the fact."""

    def spelled(found: re.Match[str]) -> str:
        n = int(found[1])
        return _spelled(streams[n]) if n < len(streams) else found[0]

    return _STREAM.sub(spelled, document)


def _spelled(stream: Mapping[str, Any]) -> str:
    """The JSON of a stream in a complete output; see `StreamRecord`."""
    return encode_simple({name: stream.get(name) for name in STREAM_MEMBERS}).decode()
