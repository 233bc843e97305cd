"""The bytes behind a name: an artifact, or the streams of an invocation that ended or still runs.

`head`, `tail`, `cat` and `grep` read all of them in the same way.
"""

import re
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, NamedTuple
from uuid import UUID

from tooltrail.artifacts import (
    ArtifactArchive,
    ArtifactReader,
    Capture,
    StreamFollower,
    open_sink,
    spooled_streams,
)
from tooltrail.cli._artifacts import find_artifact
from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._output import copy_blocks, say, write_block
from tooltrail.records.errors import (
    AmbiguousNameError,
    InvalidRecordError,
    NotFoundError,
    StoreNotFoundError,
    UnavailableError,
)
from tooltrail.store import InvocationDetail, Store, StreamView

_DIGITS = re.compile(r"[0-9a-f]{4,64}")
"""A part of an id or of a digest."""

_BLOCK = 1 << 20


def find(store: Store, name: str) -> UUID | str:
    """The id of the invocation with a name, or the path of the artifact."""
    if name.startswith(("sha256:", "sha256/")):
        return find_artifact(store, name)
    found: list[UUID | str] = []
    problem = ""
    try:
        found.append(store.reader.invocation_id(name))
    except (AmbiguousNameError, StoreNotFoundError):
        raise
    except NotFoundError as error:  # with the nearest names
        problem = str(error).replace("no invocation is", "no invocation and no artifact is")
    if "/" in name or _DIGITS.fullmatch(name):
        try:
            found.append(find_artifact(store, name))
        except AmbiguousNameError:
            raise
        except (NotFoundError, InvalidRecordError) as error:
            if not (found or isinstance(error, NotFoundError)):
                raise
    if not found:
        raise NotFoundError(problem)
    if len(found) > 1:
        raise AmbiguousNameError(name, [*map(str, found)])
    return found[0]


class Text(NamedTuple):
    """Bytes that can be read: an artifact, or a stream of an invocation.

    Attributes:
        role: the role of the stream; empty for an artifact.
        blocks: reads its bytes from the beginning. If the call has ended, their digest is compared
            first. Close the generator: it holds an open file.
        artifact: opens a reader of the parts of an artifact; needs the index of the artifact.
            None for a stream that is no artifact.
    """

    role: str
    blocks: Callable[[], Generator[bytes]]
    artifact: Callable[[], ArtifactReader] | None = None

    @contextmanager
    def reader(self) -> Generator[ArtifactReader]:
        """A reader of its parts. A stream that is no artifact is copied to a temporary one."""
        if self.artifact is not None:
            yield self.artifact()
            return
        with closing(self.blocks()) as blocks, reader_of(blocks) as reader:
            yield reader

    def part(self, read: Callable[[ArtifactReader], Iterator[bytes]]) -> Iterator[bytes]:
        """Some of its bytes, after the digest of all was compared."""
        with self.reader() as reader:
            reader.check()
            yield from read(reader)

    def head(self, lines: int) -> Iterator[bytes]:
        """The first lines. Of an artifact, the digest is compared first."""
        if self.artifact is not None:
            yield from self.part(lambda one: one.iter_head(lines))
            return
        with closing(self.blocks()) as blocks:
            for block in blocks:
                count = block.count(b"\n")
                if count >= lines:
                    yield b"".join(one + b"\n" for one in block.split(b"\n", lines)[:lines])
                    return
                lines -= count
                yield block


def texts_of(
    store: Store, name: str, role: str | None
) -> tuple[list[Text], InvocationDetail | None]:
    """The artifact with a name, or the streams of an invocation and the invocation itself."""
    found = find(store, name)
    if isinstance(found, str):
        size = next((one.size for one in store.reader.artifacts(beginning=found)), None)
        opened = partial(_checked_blocks, partial(store.archive.open, found, size=size))
        return [Text("", opened, partial(store.archive.reader, found, size=size))], None
    detail = store.reader.invocation(found)
    return streams_of(store, detail, role), detail


def streams_of(store: Store, detail: InvocationDetail, role: str | None) -> list[Text]:
    """The streams of an invocation that ended, or that still runs; see `texts_of`."""
    name = str(detail.summary.id)
    if detail.summary.state == "started":
        folder = store.spool / name
        roles = (one for one in spooled_streams(folder) if wanted(one, None) or one == role)
        texts = [Text(one, partial(_spooled, folder, one)) for one in roles]
    else:
        texts = [stored(store, one) for one in detail.streams]
    if role not in (None, *(one.role for one in texts)):
        has = ", ".join(one.role for one in texts) or "none"
        raise NotFoundError(f"invocation {name} has no stream {role!r}; it has {has}")
    return [one for one in texts if wanted(one.role, role)]


def print_output(
    store: Store, texts: Sequence[Text], detail: InvocationDetail | None, role: str | None
) -> int:
    """Print the texts of an artifact or an invocation, see `texts_of`; return the exit code.

    A failure without streams is printed as its envelope.
    """
    if detail is not None and not detail.streams and role is None and detail.complete_json:
        write_block(sys.stdout.buffer, detail.complete_json.encode("utf-8", "surrogatepass"))
    for text in texts:
        with closing(text.blocks()) as blocks:
            copy_blocks(blocks, target_of(text.role, role))
    return say_incomplete(store, detail, role)


def say_incomplete(store: Store, detail: InvocationDetail | None, role: str | None = None) -> int:
    """Say which bytes of an output are missing, and return the exit code."""
    if detail is None:
        return ExitCode.OK
    if detail.complete_json is None:
        name = str(detail.summary.id)
        has_begun = detail.summary.state == "started" and spooled_streams(store.spool / name)
        if not has_begun:
            say(f"tooltrail: invocation {name}: {detail.absence_of('output')}")
        return ExitCode.OK if has_begun else ExitCode.INCOMPLETE
    lost = [one for one in detail.streams if one.loss_reason and wanted(one.role, role)]
    for one in lost:
        missing = one.produced_size - one.size
        say(f"tooltrail: {one.role}: {missing:,} bytes were not kept: {one.loss_reason}")
    return ExitCode.INCOMPLETE if lost else ExitCode.OK


def wanted(role: str, only: str | None) -> bool:
    """Whether to print a stream: all but `order`, or the only requested one."""
    return role != "order" if only is None else role == only


def target_of(role: str, only: str | None) -> BinaryIO:
    """Where to print a stream: recorded stderr on stderr, unless it is the only requested one."""
    return sys.stderr.buffer if role == "stderr" and only is None else sys.stdout.buffer


def _checked_blocks(open_source: Callable[[], BinaryIO]) -> Generator[bytes]:
    """The bytes of a source, after its size and digest were compared. Needs no index."""
    deque(_blocks_of(open_source), maxlen=0)
    yield from _blocks_of(open_source)


def _spooled(folder: Path, role: str) -> Generator[bytes]:
    with StreamFollower(folder, role, lambda: False) as follower:
        yield from follower.poll()


def stored(store: Store, stream: StreamView) -> Text:
    """A stream of an invocation that ended."""
    opened = partial(_checked_blocks, partial(store.reader.open_stream, stream))
    if stream.artifact_path is None or stream.erasure is not None:
        return Text(stream.role, opened)
    artifact = partial(store.archive.reader, stream.artifact_path, size=stream.size)
    return Text(stream.role, opened, artifact)


def _blocks_of(open_source: Callable[[], BinaryIO]) -> Generator[bytes]:
    with open_source() as source:
        yield from iter(lambda: source.read(_BLOCK), b"")


@contextmanager
def reader_of(blocks: Iterable[bytes]) -> Generator[ArtifactReader]:
    """A reader of bytes that are no artifact: they are copied to a temporary one."""
    with TemporaryDirectory(prefix="tooltrail-") as folder:
        with Capture("text", Path(folder) / "text.zst", edge_bytes=0) as capture:
            for block in blocks:
                capture.write(block)
        captured = capture.close()
        if captured.counted.loss_reason is not None:
            raise UnavailableError(f"{folder} has no room: {captured.counted.loss_reason}")
        archive = ArtifactArchive(open_sink(f"file://{folder}/artifacts", create=True))
        yield archive.reader(archive.publish(captured).path)
