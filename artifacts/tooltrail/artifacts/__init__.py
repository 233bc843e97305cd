"""Large bytes: where they are kept, how they are encoded, and how they are taken in and checked."""

from tooltrail.artifacts._lines_around import Match
from tooltrail.artifacts.archive import ArtifactArchive, Outcome, StoredArtifact
from tooltrail.artifacts.capture import Capture, CapturedStream
from tooltrail.artifacts.codec import FRAME_SIZE, FrameWriter, encode, open_plain
from tooltrail.artifacts.frame_index import FrameIndex
from tooltrail.artifacts.fsspec_sink import FsspecSink, open_sink
from tooltrail.artifacts.paths import artifact_path, check_path, digest_of_path, path_beginning
from tooltrail.artifacts.reading import ArtifactReader
from tooltrail.artifacts.sink import ArtifactSink, ObjectStat, SinkCapabilities

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
    "open_sink",
    "path_beginning",
]
