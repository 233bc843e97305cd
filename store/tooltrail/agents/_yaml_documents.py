"""From the text of a file to a JSON value with places, or to what keeps it from being one."""

import re
from typing import NoReturn

from tooltrail.agents._extra import missing_extra
from tooltrail.agents._yaml_nodes import Fault, Node, NoDocumentError
from tooltrail.agents.config_problems import Place

MAX_SIZE = 1 << 20
"""Bytes of a file; a configuration has some thousand."""

_BOM = "\ufeff"

# What editors take for part of a line and YAML 1.1 for its end, and what nobody sees.
_INVISIBLE = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)

_OTHER_ENCODINGS = {
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"\0": "UTF-16 or UTF-32",
}


def decode(data: bytes) -> str:
    """The text of a file, without a byte order mark.

    Raises:
        NoDocumentError: it is too large or no UTF-8.
    """
    _check_size(len(data))
    try:
        return data.decode().removeprefix(_BOM)
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        for beginning, name in _OTHER_ENCODINGS.items():
            if data.startswith(beginning):
                _fail(before, f"no UTF-8: it looks like {name}; save it as UTF-8")
        _fail(before, f"no UTF-8: a byte {data[error.start]:#04x} that belongs to no character")


def read_document(text: str) -> tuple[Node, list[Fault]]:
    """The value that a text spells in YAML 1.2, and what in it is not taken as it is.

    Raises:
        NoDocumentError: there is none, or more than one.
        UnavailableError: PyYAML is not installed.
    """
    _check_size(len(text.encode("utf-8", "surrogatepass")))
    text = text.removeprefix(_BOM)
    if (hidden := _INVISIBLE.search(text)) is not None:
        code = f"U+{ord(hidden[0]):04X}"
        _fail(text[: hidden.start()], f"an invisible character, {code}: escape it in double quotes")
    node, faults = _compose(text)
    if node is None or (node.value is None and not faults):
        raise NoDocumentError(Place(1, 1), "the file is empty")
    return node, faults


def _compose(text: str) -> tuple[Node | None, list[Fault]]:
    try:
        from tooltrail.agents._yaml_composing import compose  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise missing_extra(error) from error
    return compose(text)


def _check_size(size: int) -> None:
    if size > MAX_SIZE:
        raise NoDocumentError(Place(1, 1), f"larger than {MAX_SIZE >> 20} MiB")


def _fail(before: str, message: str) -> NoReturn:
    """Refuse a text for what comes after some part of it."""
    lines = re.split("\r\n|\r|\n", before)
    raise NoDocumentError(Place(len(lines), len(lines[-1]) + 1), message)
