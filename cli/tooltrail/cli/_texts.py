"""The bytes behind a name: an artifact, or the streams of an invocation that ended or still runs.

Wherever bytes are kept, `head`, `tail`, `cat` and `grep` read them in one way.
"""

import re
import sys
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO
from uuid import UUID

from tooltrail.artifacts import (
    ArtifactArchive,
    ArtifactReader,
    Capture,
    StreamFollower,
    open_sink,
    spooled_streams,
)
from tooltrail.cli._artifacts import find_artifact, open_known
from tooltrail.cli._output import copy_blocks, copy_stream
from tooltrail.records.errors import (
    AmbiguousNameError,
    InvalidRecordError,
    NotFoundError,
    StoreNotFoundError,
    UnavailableError,
)
from tooltrail.store import Store, StreamView

_DIGITS = re.compile(r"[0-9a-f]{4,64}")
"""A part of an id or of a digest."""

_BLOCK = 1 << 20


def find(store: Store, name: str) -> UUID | str:
    """The id of the invocation with a name, or the path of the artifact.

    Raises:
        AmbiguousNameError: the name fits several.
        NotFoundError: the name fits nothing.
        PathEscapeError: the path leaves the artifact root.
        TooltrailError: the store cannot be read.
    """
    if name.startswith(("sha256:", "sha256/")):
        return find_artifact(store, name)
    invocation, problem = _invocation(store, name)
    is_path = "/" in name
    if not (is_path or _DIGITS.fullmatch(name)):
        if invocation is None:
            raise problem or NotFoundError(name)
        return invocation
    try:
        path = find_artifact(store, name)
    except (NotFoundError, InvalidRecordError) as error:
        if invocation is not None:
            return invocation
        if isinstance(error, AmbiguousNameError) or (
            is_path and not isinstance(error, NotFoundError)
        ):
            raise
        sentence = str(problem)  # with the nearest names
        both = sentence.replace("no invocation is", "no invocation and no artifact is")
        raise NotFoundError(both) from None
    if invocation is not None:
        raise AmbiguousNameError(name, [str(invocation), path])
    return path


def _invocation(store: Store, name: str) -> tuple[UUID | None, NotFoundError | None]:
    """The invocation with a name, or why there is none."""
    try:
        return store.reader.invocation(name).summary.id, None
    except (AmbiguousNameError, StoreNotFoundError):
        raise
    except NotFoundError as error:
        return None, error


def print_all(store: Store, name: str, role: str | None) -> None:
    """Print all bytes of an artifact, or of the output of an invocation.

    These are read from the beginning, which needs no index. No byte of an artifact is printed if
    its digest or size is not that of its row.

    Raises:
        TooltrailError: like `open_texts`.
    """
    found = find(store, name)
    if isinstance(found, str):
        size = next((one.size for one in store.reader.artifacts(beginning=found)), None)
        with store.archive.open(found, size=size) as source:
            while source.read(_BLOCK):
                pass
        with store.archive.open(found, size=size) as source:
            copy_stream(source, sys.stdout.buffer)
        return
    detail = store.reader.invocation(found)
    streams = [one for one in detail.streams if wanted(one.role, role)]
    for stream in streams:
        with store.reader.open_stream(stream) as source:
            copy_stream(source, target_of(stream.role, role))
    if not streams:
        with open_texts(store, name, role) as texts:
            for one, reader in texts.items():
                copy_blocks(reader.iter_bytes(), target_of(one, role))


@contextmanager
def open_texts(
    store: Store, name: str, role: str | None, *, is_checked: bool = False
) -> Generator[dict[str, ArtifactReader]]:
    """Readers of an artifact, or of streams of an invocation, by role; an artifact has none.

    Args:
        store: the open store.
        name: name of the artifact or the invocation.
        role: the role of the only stream; None for all but `order`.
        is_checked: whether to compare the digest of a complete artifact first.

    Raises:
        TooltrailError: the name is unknown, there is no such stream, or the bytes cannot be read.
    """
    found = find(store, name)
    with ExitStack() as stack:
        if isinstance(found, str):
            readers = {"": open_known(store, found)}
        else:
            readers = _readers_of(store, found, role, stack)
        if is_checked:
            for reader in readers.values():
                reader.check()
        yield readers


def wanted(role: str, only: str | None) -> bool:
    """Whether a stream belongs to the output, or is the only one that is asked for."""
    return role != "order" if only is None else role == only


def target_of(role: str, only: str | None) -> BinaryIO:
    """Where a stream is printed: recorded stderr on stderr, unless it is asked for alone."""
    return sys.stderr.buffer if role == "stderr" and only is None else sys.stdout.buffer


def _readers_of(
    store: Store, invocation: UUID, only: str | None, stack: ExitStack
) -> dict[str, ArtifactReader]:
    detail = store.reader.invocation(invocation)
    readers: dict[str, ArtifactReader] = {}
    if detail.summary.state == "started":
        folder = store.spool / str(invocation)
        for role in spooled_streams(folder):
            if wanted(role, only):
                follower = stack.enter_context(StreamFollower(folder, role, lambda: False))
                readers[role] = stack.enter_context(reader_of(follower.poll()))
    else:
        for stream in detail.streams:
            if wanted(stream.role, only):
                readers[stream.role] = stack.enter_context(_reader(store, stream))
    if only is not None and not readers:
        roles = ", ".join(stream.role for stream in detail.streams) or "none"
        raise NotFoundError(f"invocation {invocation} has no stream {only!r}; it has {roles}")
    return readers


@contextmanager
def _reader(store: Store, stream: StreamView) -> Generator[ArtifactReader]:
    if stream.artifact_path is not None and stream.erasure is None:
        yield store.archive.reader(stream.artifact_path, size=stream.size)
        return
    with (
        store.reader.open_stream(stream) as source,
        reader_of(iter(lambda: source.read(_BLOCK), b"")) as reader,
    ):
        yield reader


@contextmanager
def reader_of(blocks: Iterable[bytes]) -> Generator[ArtifactReader]:
    """A reader of bytes that are no artifact, through a temporary one.

    Raises:
        UnavailableError: the disk has no room for them.
    """
    with TemporaryDirectory(prefix="tooltrail-") as folder:
        with Capture("text", Path(folder) / "text.zst", edge_bytes=0) as capture:
            for block in blocks:
                capture.write(block)
        captured = capture.close()
        if captured.counted.loss_reason is not None:
            raise UnavailableError(f"{folder} has no room: {captured.counted.loss_reason}")
        archive = ArtifactArchive(open_sink(f"file://{folder}/artifacts", create=True))
        yield archive.reader(archive.publish(captured).path)
