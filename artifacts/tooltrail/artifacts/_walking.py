"""Decodes a stored object from end to end: what its frames hold, whatever an index says of them."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, cast

from tooltrail.artifacts._forward_window import LARGEST_FRAME, ForwardWindow
from tooltrail.artifacts._frame_reading import read_frame
from tooltrail.artifacts.codec import count_newlines
from tooltrail.artifacts.frame_index import Frame, FrameIndex, IndexBuilder
from tooltrail.artifacts.frame_spans import FrameSpan, iter_spans
from tooltrail.artifacts.sink import ArtifactSink
from tooltrail.records.errors import DamageError, UnavailableError

_SKIPPABLE = {bytes([number]) for number in range(0x50, 0x60)}
"""First bytes of frames without data, which the index is made of."""


@dataclass(frozen=True, slots=True)
class Walked:
    """What was found in an object.

    Attributes:
        index: of its frames as they are.
        digits: of the SHA-256 of its plain bytes.
        line_count: newlines, plus one for an unfinished last line.
    """

    index: FrameIndex
    digits: str
    line_count: int


def walk(
    sink: ArtifactSink,
    path: str,
    own: FrameIndex | None,
    see: Callable[[bytes], object] | None = None,
) -> Walked:
    """Read an object once, in order; holds one frame at a time.

    Args:
        sink: where it is.
        path: of the object.
        own: the index that it ends with, None when it ends without one. It is not believed, but
            nothing may stand behind the frames than as many bytes.
        see: called with the plain bytes of each frame.

    Raises:
        MissingArtifactError: no object stands there.
        DamageError: it is cut or altered, or what follows its frames is no index.
        UnavailableError: the sink cannot serve.
    """
    index_size = 0 if own is None else own.object_size - own.frames_size
    try:
        with sink.open(path) as stored:
            found = _Walk(ForwardWindow(stored, path, max(LARGEST_FRAME, index_size)), path)
            found.go(see)
    except OSError as error:
        raise UnavailableError(
            f"artifact {path} cannot be read: {error.strerror or error}"
        ) from error
    if sink.stat(path).stored_size != found.stop + index_size:
        if own is None and not found.has_more:
            raise DamageError(f"artifact {path} is damaged: it ends inside a frame", path=path)
        raise _damaged_index(path)
    return found.walked()


class _Walk:
    """One pass over an object.

    Attributes:
        stop: offset behind the last frame with data.
        has_more: whether what stands there is the beginning of an index.
    """

    def __init__(self, window: ForwardWindow, path: str) -> None:
        self._window = window
        # Spans and frames are read by nothing but seek and read.
        self._stored = cast("BinaryIO", window)
        self._path = path
        self._builder = IndexBuilder()
        self._hasher = hashlib.sha256()
        self._newline_count = 0
        self._is_line_open = False
        self.stop = 0
        self.has_more = False

    def go(self, see: Callable[[bytes], object] | None) -> None:
        for span in iter_spans(self._stored, self._path):
            if not span.is_data:
                self.has_more = True
            elif self.has_more:
                # Nothing but an index is ever written beside the data, and it stands last.
                raise _damaged_index(self._path)
            else:
                plain = self._add(span)
                if see is not None:
                    see(plain)
            self._window.forget(span.stop)
        if not self.has_more:
            self._window.seek(self.stop)
            self.has_more = self._window.read(1)[:1] in _SKIPPABLE

    def walked(self) -> Walked:
        line_count = self._newline_count + self._is_line_open
        return Walked(self._builder.build(), self._hasher.hexdigest(), line_count)

    def _add(self, span: FrameSpan) -> bytes:
        data, plain = read_frame(self._stored, span, self._path)
        newline_count = count_newlines(plain)
        self._builder.add(Frame(data, len(plain), newline_count))
        self._hasher.update(plain)
        self._newline_count += newline_count
        if plain:
            self._is_line_open = not plain.endswith(b"\n")
        self.stop = span.stop
        return plain


def _damaged_index(path: str) -> DamageError:
    return DamageError(f"the index of artifact {path} is damaged", path=path)
