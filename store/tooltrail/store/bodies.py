"""Bodies and facts as the database stores them: compressed.

A body is a byte string that is stored once by digest, compressed if that makes it smaller. A fact
is mostly member names, digests and ids. It is packed as

    the number of a dictionary   one byte
    a zstd frame                 the JSON with a NUL in the place of each digest and id
    digests and ids              32 and 16 bytes each, in the order of the JSON

The dictionary has the member names. Dictionaries never change: a new one gets a new number.

    >>> unpack_fact(pack_fact(b'{"kind":"session.closed"}'))
    b'{"kind":"session.closed"}'
"""

import re
import threading
from typing import Final

import zstandard

from tooltrail.records import DamageError, DigestMismatchError, digest_of

_MIN_COMPRESSED = 64
"""Smallest body that is compressed, in bytes: for less, a zstd frame costs more than it saves."""

_LEVEL = 3

_NUMBER: Final = 2
_MOST_BYTES: Final = 1 << 30
"""Largest fact or body in bytes: the largest frame of a journal."""

_WORDS_2: Final = (
    '{"at":"2026-01-01T00:00:00.000000Z","document":"sha256:\0","id":"\0","kind":"agent.leg",'
    '"agent":"sha256:\0","agent_version":"1","session":"\0","v":1}'
    '{"at":"2026-01-01T00:00:00.000000Z","document":"sha256:\0","id":"\0","kind":"agent.outcome"}'
    '{"action":"gc","actor":"","at":"","details":"sha256:\0","id":"\0","kind":"maintenance"}'
    '{"agent":"","at":"2026-01-01T00:00:00.000000Z","environment":"sha256:\0",'
    '"kind":"session.opened","name":"","parent":"\0","session":"\0","title":"","v":1}'
    '{"at":"2026-01-01T00:00:00.000000Z","kind":"session.closed","reason":"","session":"\0","v":1}'
    '{"at":"2026-01-01T00:00:00.000000Z","id":"\0","kind":"tool.offered","session":"\0",'
    '"tools":["sha256:\0","sha256:\0"],"v":1}'
    '{"at":"2026-01-01T00:00:00.000000Z","document":"sha256:\0","id":"\0","kind":"message",'
    '"payload":"sha256:\0","role":"assistant","session":"\0","text":"sha256:\0","v":1,'
    '"wire_format":"anthropic"}{"role":"user"}{"role":"tool"}{"role":"system"}'
    '"reason":"preview budget","stage":"projection","unit":"bytes"}'
    '"reason":"receipt budget","stage":"rendering","unit":"lines"}'
    '"spooled":"/stdout.zst"},"error_kind":"internal","state":"error","state":"interrupted",'
    '"loss_reason":"","signal":9,"timed_out":false,"renderer":"error","renderer":"generic",'
    '"digest":"sha256:\0",'
    '"line_count":0,"produced_line_count":0,"produced_size":0,"role":"stderr","size":0}'
    '{"arguments":"sha256:\0","at":"2026-01-01T00:00:00.000000Z","call_id":"call_",'
    '"environment":"sha256:\0","family":"command","id":"\0","kind":"call.started","message":"\0",'
    '"owner":"","policy":"sha256:\0","position":1,"session":"\0","title":"","tool_name":"Bash","v":1}'
    '{"at":"2026-01-01T00:00:00.000000Z","duration_ms":1,"exit_status":0,"id":"\0",'
    '"kind":"call.ended","output":"sha256:\0","session":"\0","shown":{"artifacts":[{"digest":'
    '"sha256:\0","role":"stdout"}],"canonical":"sha256:\0","omissions":[{"after":1,"before":2,"field":"stdout",'
    '"reason":"preview budget","stage":"projection","unit":"bytes"}],"receipt":"sha256:\0",'
    '"renderer":"command","renderer_version":1},"state":"success","streams":[{"digest":"sha256:\0",'
    '"line_count":1,"produced_line_count":1,"produced_size":1,"role":"stdout","size":1}],"v":1}'
)

_DICTIONARY: Final = zstandard.ZstdCompressionDict(
    _WORDS_2.encode(), dict_type=zstandard.DICT_TYPE_RAWCONTENT
)

_NAME: Final = re.compile(
    rb'"(sha256:[0-9a-f]{64}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})'
)
"""A digest or an id at the beginning of a text. JSON has no NUL, which replaces its digits."""

_DIGEST_HEX, _ID_HEX = 64, 32
"""Hexadecimal digits of a digest and of an id."""


class _Codec(threading.local):
    """A compressor and a decompressor per thread: threads may not share them.

    Making a pair takes as long as compressing a short output.
    """

    def __init__(self, dictionary: zstandard.ZstdCompressionDict | None = None) -> None:
        self.compressor = zstandard.ZstdCompressor(
            level=_LEVEL, dict_data=dictionary, write_dict_id=False
        )
        self.decompressor = zstandard.ZstdDecompressor(dict_data=dictionary)


_CODEC = _Codec()
_FACT_CODEC = _Codec(_DICTIONARY)


def encode_body(data: bytes) -> tuple[str, bytes]:
    """The encoding and the stored bytes of a body."""
    if len(data) >= _MIN_COMPRESSED:
        packed = _CODEC.compressor.compress(data)
        if len(packed) < len(data):
            return "zstd", packed
    return "raw", data


def decode_body(digest: str, size: object, encoding: object, data: object) -> bytes:
    """The bytes of a body; raises `DamageError` if its row was altered, or the bytes erased."""
    if data is None:
        raise DamageError(f"body {digest} was erased or lost", path=digest)
    # SQLite accepts any type in any column, and the decoder fails at sizes that memory cannot have.
    if not isinstance(data, bytes) or not isinstance(size, int) or not 0 <= size <= _MOST_BYTES:
        raise DamageError(f"body {digest} is damaged: its row is altered", path=digest)
    if encoding == "zstd":
        try:
            # A damaged header may announce more bytes than there is memory for.
            if zstandard.frame_content_size(data) != size:
                raise DigestMismatchError(f"body {digest} is damaged: wrong size", path=digest)
            data = _CODEC.decompressor.decompress(
                data, max_output_size=size, allow_extra_data=False
            )
        except (zstandard.ZstdError, MemoryError) as error:
            raise DamageError(f"body {digest} is damaged: {error}", path=digest) from error
    elif encoding != "raw":
        raise DamageError(f"body {digest} is damaged: its encoding is unknown", path=digest)
    if len(data) != size or digest_of(data) != digest:
        raise DigestMismatchError(f"body {digest} is damaged: it has another digest", path=digest)
    return data


def pack_fact(fact_json: bytes) -> bytes:
    """The bytes that the ledger stores for a fact."""
    pieces = _NAME.split(fact_json)
    names = pieces[1::2]
    pieces[1::2] = [b'"sha256:\0' if one.startswith(b"sha256:") else b'"\0' for one in names]
    frame = _FACT_CODEC.compressor.compress(b"".join(pieces))
    digits = b"".join(names).replace(b"sha256:", b"").replace(b"-", b"").decode()
    return bytes([_NUMBER]) + frame + bytes.fromhex(digits)


def unpack_fact(packed: object) -> bytes:
    """The canonical JSON of a stored fact; raises `DamageError` if it was altered."""
    # SQLite accepts any type in any column.
    if not isinstance(packed, bytes) or packed[:1] != bytes([_NUMBER]):
        raise DamageError("a ledger entry is damaged: its fact is not readable", path="ledger")
    frame = packed[1:]
    try:
        # A damaged header may announce more bytes than there is memory for.
        if not 0 <= zstandard.frame_content_size(frame) <= _MOST_BYTES:
            raise DamageError("a ledger entry is damaged: its size is wrong", path="ledger")
        unpacking = _FACT_CODEC.decompressor.decompressobj()
        *pieces, last = unpacking.decompress(frame).split(b"\0")
    except zstandard.ZstdError as error:
        raise DamageError(f"a ledger entry is damaged: {error}", path="ledger") from error
    digits = unpacking.unused_data.hex().encode()
    fact: list[bytes] = []
    offset = 0
    for piece in pieces:
        size = _DIGEST_HEX if piece.endswith(b":") else _ID_HEX
        name = digits[offset : offset + size]
        fact += piece, name if size == _DIGEST_HEX else _spelled_id(name)
        offset += size
    if not unpacking.eof or len(digits) != offset:
        raise DamageError("a ledger entry is damaged: its length is wrong", path="ledger")
    return b"".join(fact) + last


def _spelled_id(digits: bytes) -> bytes:
    return b"-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
