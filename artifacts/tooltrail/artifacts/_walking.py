"""Makes the index of a stored object that has none, by decoding it from end to end."""

from typing import BinaryIO

from tooltrail.artifacts._frame_reading import read_frame
from tooltrail.artifacts.codec import count_newlines
from tooltrail.artifacts.frame_index import Frame, FrameIndex, IndexBuilder
from tooltrail.artifacts.frame_spans import FrameSpan, iter_spans
from tooltrail.artifacts.sink import ArtifactSink
from tooltrail.records.errors import DamageError, UnavailableError


def walk(sink: ArtifactSink, path: str) -> FrameIndex:
    """The index of an object that ends without one; holds one frame at a time.

    Raises:
        MissingArtifactError: no object stands there.
        DamageError: it is cut or altered, or what follows its frames is no index.
        UnavailableError: the sink cannot serve.
    """
    builder = IndexBuilder()
    stop = 0
    try:
        with sink.open(path) as stored:
            for span in iter_spans(stored, path):
                builder.add(_decoded(stored, span, path))
                stop = span.stop
    except OSError as error:
        raise UnavailableError(
            f"artifact {path} cannot be read: {error.strerror or error}"
        ) from error
    if stop != sink.stat(path).stored_size:
        raise DamageError(f"artifact {path} is damaged: it ends inside a frame", path=path)
    return builder.build()


def _decoded(stored: BinaryIO, span: FrameSpan, path: str) -> Frame:
    if not span.is_data:
        # Nothing but an index is ever written beside the data.
        raise DamageError(f"the index of artifact {path} is damaged", path=path)
    data, plain = read_frame(stored, span, f"artifact {path}")
    return Frame(data, len(plain), count_newlines(plain))
