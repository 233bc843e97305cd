"""Bodies: bytes in the database, stored once by digest, compressed when that makes them smaller."""

import threading

import zstandard

from tooltrail.records import DamageError, DigestMismatchError, digest_of

_MIN_COMPRESSED = 64
"""Bytes below which the frame of zstd costs more than it saves."""

_LEVEL = 3


class Codec(threading.local):
    """A pair for each thread, since neither may be shared.

    To make one takes as long as to compress a short output.
    """

    def __init__(self, dictionary: zstandard.ZstdCompressionDict | None = None) -> None:
        self.compressor = zstandard.ZstdCompressor(
            level=_LEVEL, dict_data=dictionary, write_dict_id=False
        )
        self.decompressor = zstandard.ZstdDecompressor(dict_data=dictionary)


_CODEC = Codec()


def encode_body(data: bytes) -> tuple[str, bytes]:
    """The encoding and the stored bytes of a body."""
    if len(data) >= _MIN_COMPRESSED:
        packed = _CODEC.compressor.compress(data)
        if len(packed) < len(data):
            return "zstd", packed
    return "raw", data


def decode_body(digest: str, size: int, encoding: str, data: bytes | None) -> bytes:
    """The bytes of a body, checked.

    Raises:
        DamageError: the stored bytes are not those that were stored, or were erased.
    """
    if data is None:
        raise DamageError(f"body {digest} was erased or lost", path=digest)
    if encoding == "zstd":
        try:
            # A damaged header may announce more bytes than there is memory for.
            if zstandard.frame_content_size(data) != size:
                raise DigestMismatchError(f"body {digest} is damaged: wrong size", path=digest)
            data = _CODEC.decompressor.decompress(data, max_output_size=size)
        except zstandard.ZstdError as error:
            raise DamageError(f"body {digest} is damaged: {error}", path=digest) from error
    if len(data) != size or digest_of(data) != digest:
        raise DigestMismatchError(f"body {digest} is damaged: it has another digest", path=digest)
    return data
