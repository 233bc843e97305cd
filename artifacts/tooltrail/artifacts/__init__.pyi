from .archive import ArtifactArchive, Outcome, StoredArtifact
from .capture import Capture, CapturedStream
from .codec import FRAME_SIZE, FrameWriter, encode, open_plain
from .frame_index import FrameIndex
from .fsspec_sink import FsspecSink, open_sink
from .grep import Match
from .paths import artifact_path, check_path, digest_of_path, path_beginning
from .reading import ArtifactReader, open_reader
from .sink import ArtifactSink, ObjectStat, SinkCapabilities

__all__ = [
    "FRAME_SIZE",
    "ArtifactArchive",
    "ArtifactReader",
    "ArtifactSink",
    "Capture",
    "CapturedStream",
    "FrameIndex",
    "FrameWriter",
    "FsspecSink",
    "Match",
    "ObjectStat",
    "Outcome",
    "SinkCapabilities",
    "StoredArtifact",
    "artifact_path",
    "check_path",
    "digest_of_path",
    "encode",
    "open_plain",
    "open_reader",
    "open_sink",
    "path_beginning",
]
