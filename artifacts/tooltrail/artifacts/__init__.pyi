from ._checked import open_checked
from ._scratch import copy_of
from .archive import ArtifactArchive, Outcome, StoredArtifact
from .capture import Capture
from .captured import CapturedStream
from .codec import FrameWriter, encode, open_plain
from .following import FOLLOW_INTERVAL_S, StreamFollower, follow
from .frame_index import FrameIndex
from .fsspec_sink import FsspecSink, defer_sink, open_sink
from .grep import Match
from .limits import CaptureLimits, DiskRoom
from .naming import ArtifactNamer
from .paths import artifact_path, check_path, digest_of_path, path_beginning
from .private_files import (
    PRIVATE_FILE,
    PRIVATE_FOLDER,
    create_private,
    make_durable_folders,
    make_private_folders,
    open_without_links,
    sync_path,
)
from .reading import ArtifactReader, open_reader
from .salvaging import Salvaged, SpoolReader, salvage
from .short_capture import ShortCapture
from .sink import FRAME_SIZE, ArtifactSink, ObjectStat, SinkCapabilities
from .spool_folders import spooled_streams

__all__ = [
    "FOLLOW_INTERVAL_S",
    "FRAME_SIZE",
    "PRIVATE_FILE",
    "PRIVATE_FOLDER",
    "ArtifactArchive",
    "ArtifactNamer",
    "ArtifactReader",
    "ArtifactSink",
    "Capture",
    "CaptureLimits",
    "CapturedStream",
    "DiskRoom",
    "FrameIndex",
    "FrameWriter",
    "FsspecSink",
    "Match",
    "ObjectStat",
    "Outcome",
    "Salvaged",
    "ShortCapture",
    "SinkCapabilities",
    "SpoolReader",
    "StoredArtifact",
    "StreamFollower",
    "artifact_path",
    "check_path",
    "copy_of",
    "create_private",
    "defer_sink",
    "digest_of_path",
    "encode",
    "follow",
    "make_durable_folders",
    "make_private_folders",
    "open_checked",
    "open_plain",
    "open_reader",
    "open_sink",
    "open_without_links",
    "path_beginning",
    "salvage",
    "spooled_streams",
    "sync_path",
]
