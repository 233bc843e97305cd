"""Opening sinks by URL, the one module that touches fsspec.

fsspec is untyped and caches file systems and listings by itself. Here every sink has a file system
of its own and no listing is remembered, so what another process does is seen at once. What differs
between disks, memory and object stores is in a `Place`. Publishing is never left to fsspec's
transactions, which all threads share, nor on disks to its exclusive create, which is a race.
"""

import os
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from tooltrail.artifacts._connection import Connection
from tooltrail.artifacts._deferred_place import DeferredPlace
from tooltrail.artifacts._local import make_durable_folders
from tooltrail.artifacts._object_place import ObjectPlace
from tooltrail.artifacts._placed_sink import FsspecSink, why
from tooltrail.artifacts._places import FileSystem, LocalPlace, MemoryPlace, Place
from tooltrail.artifacts._sink_options import configured, merged, split_bucket
from tooltrail.artifacts._store_errors import as_os_error
from tooltrail.artifacts.paths import check_path
from tooltrail.artifacts.sink import ArtifactSink, SinkCapabilities
from tooltrail.records.errors import InvalidRecordError, UnavailableError

__all__ = ["FsspecSink", "defer_sink", "open_sink"]


def open_sink(url: str, *, create: bool = False) -> ArtifactSink:
    """Open the sink at a folder's path or at a URL.

    Args:
        url: a folder, `file://FOLDER`, `memory://NAME`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`
            or `az://CONTAINER/PREFIX`. Relative folders are taken from the current one. Nothing
            in it is percent-decoded. Endpoints and credentials of object stores come from the
            providers' environment variables and from the file `$TOOLTRAIL_SINK_CONFIG`.
        create: make the root folder, durably and with mode 0700, when it is not there. One that
            is there keeps its mode, which says who may read what is stored below it. Buckets are
            never made: they have owners, regions and rules that are not for a sink to choose.

    Raises:
        InvalidRecordError: the URL is empty, of another kind, or holds a user, a password or a
            query; the options for the store are wrong; or an extra is not installed.
        UnavailableError: the root folder or the bucket is not there, as when a disk is not
            mounted, access to it is refused, or the folder cannot be made.
    """
    site = _site(url)
    return FsspecSink(site.url, site.open_place(create))


def defer_sink(url: str, *, mark: str | None = None) -> ArtifactSink:
    """The sink at a folder's path or at a URL, which is opened when it is first used.

    While it cannot be, each of its methods raises UnavailableError, and the next one tries again.

    Args:
        url: as for `open_sink`.
        mark: the path of an object without which this is not the right root, such as the folder
            on which a disk is not mounted. Where it is missing nothing is put, and a missing object
            is no reason to take it for lost: that is an UnavailableError.

    Raises:
        InvalidRecordError: the URL is empty, of another kind, or holds a user, a password or a
            query; or the options for the store cannot be read.
    """
    site = _site(url)
    place = DeferredPlace(site.capabilities, partial(site.open_place, create=False))
    return FsspecSink(site.url, place, mark)


class _OpensPlace(Protocol):
    """Raises InvalidRecordError and UnavailableError."""

    def __call__(self, create: bool) -> Place: ...


class _Site(NamedTuple):
    """What is known of a sink by its URL alone, and how to open its place."""

    url: str
    capabilities: SinkCapabilities
    open_place: _OpensPlace


def _site(url: str) -> _Site:
    protocol, separator, name = url.partition("://")
    if not separator:
        protocol, name = "file", str(_absolute(url)) if url else ""
    if not name:
        raise InvalidRecordError(f"not a place for artifacts: {url!r}")
    if protocol == "file":
        return _local_site(name)
    if protocol == "memory":
        return _memory_site(name)
    from tooltrail.artifacts._providers import PROVIDERS  # noqa: PLC0415  slow to import

    if protocol in PROVIDERS:
        return _object_site(protocol, name)
    known = ", ".join(["file", "memory", *PROVIDERS])
    raise InvalidRecordError(f"artifacts cannot be kept at {protocol}://; known are {known}")


def _local_site(name: str) -> _Site:
    if not name.startswith("/"):
        raise InvalidRecordError(f"not an absolute folder: 'file://{name}'")
    folder = _absolute(name)

    def open_place(create: bool) -> Place:
        try:
            if create:
                make_durable_folders(folder)
            root = Path(os.path.realpath(folder, strict=True))
            next(root.iterdir(), None)
        except OSError as error:
            sentence = f"cannot use {folder} for artifacts: {error.strerror or why(error)}"
            raise UnavailableError(sentence) from error
        return LocalPlace(cast("FileSystem", _Deferred("file")), root)

    return _Site(f"file://{folder}", LocalPlace.capabilities, open_place)


def _memory_site(name: str) -> _Site:
    root = "/" + check_path(name.strip("/"))

    def open_place(create: bool) -> Place:
        place = MemoryPlace(_filesystem("memory"), root)
        if create:
            place.make_root()
        try:
            place.check_root()
        except FileNotFoundError as error:
            raise UnavailableError(f"there is no folder for artifacts at memory:/{root}") from error
        return place

    return _Site(f"memory:/{root}", MemoryPlace.capabilities, open_place)


def _object_site(protocol: str, name: str) -> _Site:
    from tooltrail.artifacts._providers import PROVIDERS  # noqa: PLC0415  see `_site`

    provider = PROVIDERS[protocol]
    bucket, prefix = split_bucket(protocol, name)
    url = f"{protocol}://{bucket}/{prefix}".rstrip("/")
    options = merged(provider.defaults, configured(protocol, PROVIDERS))

    def open_place(create: bool) -> Place:  # noqa: ARG001  buckets are never made
        connection = Connection(partial(_connect, protocol, options))
        connection.get()
        place = ObjectPlace(provider.make_store(connection, bucket), bucket, prefix)
        try:
            place.check_root()
        except OSError as error:
            _refuse_options(protocol, error.__cause__)
            raise UnavailableError(f"cannot use {url} for artifacts: {why(error)}") from error
        return place

    return _Site(url, ObjectPlace.capabilities, open_place)


def _connect(protocol: str, options: dict[str, Any]) -> Any:
    from tooltrail.artifacts._providers import PROVIDERS  # noqa: PLC0415  see `_site`

    provider = PROVIDERS[protocol]
    try:
        filesystem = _filesystem(protocol, **options)
    except ImportError as error:
        raise InvalidRecordError(
            f"artifacts at {protocol}:// need an extra: pip install 'tooltrail[{provider.extra}]'"
        ) from error
    except Exception as error:
        _refuse_options(protocol, error)
        raise UnavailableError(
            f"cannot use {protocol}:// for artifacts: {why(as_os_error(error))}"
        ) from error
    provider.prepare(filesystem)
    return filesystem


def _refuse_options(protocol: str, error: BaseException | None) -> None:
    """Raise when a client did not like its options; its words may quote their values."""
    if isinstance(error, TypeError | ValueError | KeyError):
        raise InvalidRecordError(
            f"the options for {protocol}:// are not understood ({type(error).__name__}):"
            " see the provider's environment variables and $TOOLTRAIL_SINK_CONFIG"
        ) from None


def _absolute(name: str) -> Path:
    # Not resolved: a symbolic link to the folder is the name that its user wants remembered.
    return Path(os.path.abspath(name))  # noqa: PTH100


class _Deferred:
    """A file system that is made when it is first used.

    To publish or read a local object by its name takes less time than to import fsspec, which only
    lists.
    """

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol

    def __getattr__(self, name: str) -> object:
        """Whatever the file system has."""
        return getattr(self._filesystem, name)

    @cached_property
    def _filesystem(self) -> Any:
        return _filesystem(self._protocol)


def _filesystem(protocol: str, **options: object) -> Any:
    import fsspec  # noqa: PLC0415  see above

    untyped: Any = fsspec
    return untyped.filesystem(
        protocol, skip_instance_cache=True, use_listings_cache=False, **options
    )
