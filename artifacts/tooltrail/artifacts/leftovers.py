"""Parts of objects that a killed process left in a folder: nothing that a sink lists.

Only local publishing makes them, and only when it has to copy: `<name of the object>.<16 hex
digits>.part` beside the object. On object stores there are none.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tooltrail.artifacts.sink import ArtifactSink, ObjectStat
from tooltrail.records.errors import InvalidRecordError, UnavailableError

_LOCAL = "file://"
_PART = re.compile(r"(?:sha256/[0-9a-f]{2}|damaged)/[^/]+\.zst\.[0-9a-f]{16}\.part")


def iter_leftovers(sink: ArtifactSink) -> Iterator[ObjectStat]:
    """Every part in a sink, sorted; `modified_at` is when it was last written to.

    One that was written to a moment ago may belong to a publication that is under way.

    Raises:
        UnavailableError: the folder cannot be read.
    """
    if not sink.url.startswith(_LOCAL):
        return
    root = _folder(sink)
    try:
        # Only the folders in which objects are, so that nothing foreign is walked through.
        folders = [*sorted(root.glob("sha256/??")), root / "damaged"]
        for folder in filter(Path.is_dir, folders):
            for file in sorted(folder.iterdir()):
                path = file.relative_to(root).as_posix()
                if _PART.fullmatch(path) and (found := _stat(root, path)):
                    yield found
    except OSError as error:
        raise UnavailableError(f"cannot list {sink.url}: {error.strerror}") from error


def remove_leftover(sink: ArtifactSink, path: str) -> bool:
    """Remove one part that `iter_leftovers` gave; False when it is gone already.

    Raises:
        InvalidRecordError: not the path of a part.
        UnavailableError: it cannot be removed.
    """
    if not _PART.fullmatch(path) or not sink.url.startswith(_LOCAL):
        raise InvalidRecordError(f"not a part of an object: {path[:200]!r}")
    try:
        (_folder(sink) / path).unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise UnavailableError(f"cannot delete {path}: {error.strerror}") from error
    return True


def _folder(sink: ArtifactSink) -> Path:
    return Path(sink.url.removeprefix(_LOCAL))


def _stat(root: Path, path: str) -> ObjectStat | None:
    try:
        status = (root / path).lstat()
    except FileNotFoundError:  # published or given up since its name was read
        return None
    return ObjectStat(path, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))
