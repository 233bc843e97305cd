"""How far each source was imported already, kept in the spool.

A cursor is only a hint: without it, a source is imported again, and its facts are recognized by
their ids. A source that was rewritten is imported from its beginning.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import IO, Final

FOLDER: Final = "imports"

_CHUNK_BYTES: Final = 1 << 20


class Cursor:
    """The cursor of one source.

    Args:
        spool: folder of the spool.
        source: the file that is imported.
        format_name: name of its format.
    """

    def __init__(self, spool: Path, source: Path, format_name: str) -> None:
        name = hashlib.sha256(f"{format_name}\0{source}".encode("utf-8", "surrogateescape"))
        self._path = spool / FOLDER / name.hexdigest()[:32]

    @property
    def offset(self) -> int:
        """The offset up to which the source was imported when this was last written."""
        return self._known()[0]

    def read(self, file: IO[bytes]) -> int:
        """The offset up to which an opened source was imported; 0 if it must be read again."""
        offset, digest, is_open = self._known()
        has_grown = is_open and os.fstat(file.fileno()).st_size > offset
        return offset if offset and not has_grown and _digest(file, offset) == digest else 0

    def _known(self) -> tuple[int, str, bool]:
        try:
            known = json.loads(self._path.read_bytes())
            return int(known["offset"]), str(known["digest"]), known.get("is_open") is True
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return 0, "", False

    def write(self, file: IO[bytes], offset: int, *, is_open: bool = False) -> None:
        """Keep the offset up to which an opened source was imported.

        `is_open` if the source is one value that is not complete yet: if the source grows, it is
        read from its beginning. Raises `OSError` if the spool cannot be written.
        """
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        staged = self._path.with_suffix(f".{os.getpid()}")
        known = {"offset": offset, "digest": _digest(file, offset), "is_open": is_open}
        staged.write_text(json.dumps(known))
        staged.replace(self._path)


def _digest(file: IO[bytes], size: int) -> str | None:
    """The digest of the first bytes of a file, which is then at its beginning; None if shorter."""
    file.seek(0)
    digest = hashlib.sha256()
    while size and (chunk := file.read(min(size, _CHUNK_BYTES))):
        digest.update(chunk)
        size -= len(chunk)
    file.seek(0)
    return None if size else digest.hexdigest()
