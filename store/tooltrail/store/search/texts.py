"""The texts of a call that a search reads, each with its place.

A JSON document is searched text by text: the text of each member, as the program that made it
wrote it, not as JSON spells it. Of a stream of more than `WHOLE_BYTES`, a search for words reads
`EDGE_BYTES` at either end.
"""

import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from tooltrail.records.frozen import Frozen
from tooltrail.store.views import InvocationDetail, StreamView

if TYPE_CHECKING:
    from tooltrail.artifacts import ArtifactArchive

WHOLE_BYTES: Final = 64 * 1024
"""Longest stream that is in the index from beginning to end, in bytes."""

EDGE_BYTES: Final = 32 * 1024
"""Bytes of each end of a longer stream that are in the index."""

_ORDER: Final = "order"
"""The role of the order of the output. Importing `records.streams` for its name takes long."""

_OF_STREAM: Final = {"role", "digest", "produced_size"}
"""Members of an object that describes a stream in a complete output."""

_STATUS: Final = "output.status"
"""The place in a complete output whose value is a word of Tooltrail: `--ok` and `--failed` ask for
it."""

_FOREIGN: Final = ("error.details", "output.error.details")
"""Places in a complete output and an error whose keys are not Tooltrail's own."""

_UNSPOKEN: Final = {"call", "data", "extras", "type"}
"""Members of a block without a text of its own: calls are recorded as such, data is no text."""

OpenArchive = Callable[[], "ArtifactArchive"]


class Piece(Frozen):
    """A part of one text.

    Attributes:
        name: the text: `arguments.command`, the role of a stream, `receipt`, `summary`, …
        text: the part.
        surface: the surface that shows the text; `json` for one that only the record has.
        path: path of the artifact that holds it; None for a text in the database.
        offset: offset of the part in the text, in bytes.
        line: number of the line with the first byte of the part, from 1.
    """

    name: str
    text: str
    surface: str
    path: str | None = None
    offset: int = 0
    line: int = 1


def pieces_of(
    detail: InvocationDetail, read: Callable[[StreamView], list[tuple[int, bytes]]]
) -> Iterator[Piece]:
    """The texts of a call, the most telling first; see `edges_of` for `read`."""
    for stream in detail.streams:
        if stream.role == _ORDER:
            continue
        for offset, data in read(stream):
            line = 1
            if offset:  # counted from the end, since the middle is not read
                line = stream.line_count - data.count(b"\n") + data.endswith(b"\n")
            text, path = text_of(data), stream.artifact_path
            yield Piece(stream.role, text, "complete", path, offset, line)
    arguments = text_of(detail.arguments)
    yield from (Piece(place, text, "input") for place, text in leaves_of("arguments", arguments))
    if detail.receipt is not None:
        yield Piece("receipt", detail.receipt.text, "receipt")
    for place, text in summary_of(detail.canonical_json):
        yield Piece(place, text, "canonical")
    for place, text in leaves_of("output", detail.complete_json or ""):
        yield Piece(place, text, "json")


def text_of(data: bytes) -> str:
    """Decode a text for a search. A byte that is not UTF-8 separates words; see `bytes_of`."""
    return data.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """The bytes of a text, also of one with bytes that are not UTF-8, or with lone surrogates."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def leaves_of(name: str, document: str) -> Iterator[tuple[str, str]]:
    """The texts in a JSON document with their places; all of it if it is not JSON.

    The keys of a tool's own JSON are a text, too.
    """
    value = _loaded(document)
    return iter([(name, document)]) if value is None else _leaves(name, value)


def spoken_of(document: str) -> Iterator[tuple[str, str]]:
    """The texts in the document of a message that its text does not have, such as thinking."""
    members = _members_of(_loaded(document))
    blocks = cast("Sequence[Any]", members.get("blocks", [members]))  # a leg has none
    for block in map(_members_of, blocks if isinstance(blocks, list) else ()):
        kind = str(block.get("type", "document"))
        if kind != "text":
            found = _leaves(kind, block, without=_UNSPOKEN)
            yield from (one for one in found if one[0] != kind)


def _leaves(name: str, value: Any, *, without: Container[str] = ()) -> Iterator[tuple[str, str]]:
    names: dict[str, None] = {}
    waiting: list[tuple[str, Any]] = [(name, value)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            if name == "output" and members.keys() >= _OF_STREAM:
                continue  # stands for a stream, which is a text of its own
            if name not in ("output", "error") or place.startswith(_FOREIGN):
                names |= dict.fromkeys(members)  # the others are keys of Tooltrail
            spoken = [(key, one) for key, one in members.items() if key not in without]
            found = [(f"{place}.{key}", one) for key, one in reversed(spoken)]
            waiting += [one for one in found if one[0] != _STATUS]
        elif isinstance(value, list):
            items = cast("Sequence[Any]", value)
            waiting += [(f"{place}[{n}]", one) for n, one in enumerate(items)][::-1]
        elif value is not None:
            yield place, value if isinstance(value, str) else json.dumps(value)
    if names:
        yield name, "\n".join(names)


def summary_of(canonical: str | None) -> Iterator[tuple[str, str]]:
    """The summary and the error of a canonical result. Its other texts stand in the output, too."""
    members = _members_of(_loaded(canonical or ""))
    if isinstance(members.get("summary_text"), str):
        yield "summary", members["summary_text"]
    if members.get("error") is not None:
        yield from _leaves("error", members["error"])


def edges_of(part: Callable[[int, int], bytes], size: int) -> list[tuple[int, bytes]]:
    """The parts of a stream that a search for words reads, each with its offset."""
    if size <= WHOLE_BYTES:
        return [(0, part(0, size))]
    tail = size - EDGE_BYTES
    return [(0, part(0, EDGE_BYTES)), (tail, part(tail, size))]


def _members_of(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _loaded(document: str) -> Any:
    if document[:1] not in ("{", "["):
        return None
    try:
        # Numbers as they are written, such as 1.5E5.
        return json.loads(document, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return None
