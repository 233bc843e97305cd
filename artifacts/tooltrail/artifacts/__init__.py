"""Large bytes: where they are kept, how they are encoded, and how they are taken in and checked."""

from tooltrail.artifacts.archive import ArtifactArchive, Outcome, StoredArtifact
from tooltrail.artifacts.capture import Capture, CapturedStream
from tooltrail.artifacts.codec import FRAME_SIZE, FrameWriter, encode, open_plain
from tooltrail.artifacts.following import FOLLOW_INTERVAL_S, StreamFollower, follow
from tooltrail.artifacts.fsspec_sink import FsspecSink, open_sink
from tooltrail.artifacts.paths import artifact_path, check_path, digest_of_path, path_beginning
from tooltrail.artifacts.salvage import Salvaged, SpoolReader, salvage
from tooltrail.artifacts.sink import ArtifactSink, ObjectStat, SinkCapabilities
from tooltrail.artifacts.spool_folders import (
    SpoolFolder,
    is_in_use,
    is_spooled,
    iter_spool_folders,
    remove_spool_folder,
    spooled_streams,
)
from tooltrail.artifacts.spool_owner import SpoolOwner, exclusive_spool, remove_dead_owners

__all__ = [
    "FOLLOW_INTERVAL_S",
    "FRAME_SIZE",
    "ArtifactArchive",
    "ArtifactSink",
    "Capture",
    "CapturedStream",
    "FrameWriter",
    "FsspecSink",
    "ObjectStat",
    "Outcome",
    "Salvaged",
    "SinkCapabilities",
    "SpoolFolder",
    "SpoolOwner",
    "SpoolReader",
    "StoredArtifact",
    "StreamFollower",
    "artifact_path",
    "check_path",
    "digest_of_path",
    "encode",
    "exclusive_spool",
    "follow",
    "is_in_use",
    "is_spooled",
    "iter_spool_folders",
    "open_plain",
    "open_sink",
    "path_beginning",
    "remove_dead_owners",
    "remove_spool_folder",
    "salvage",
    "spooled_streams",
]
