"""Open sinks by URL. This is the only module that imports fsspec.

fsspec is untyped, and by default caches file systems and listings. Here each sink has its own file
system and no cache of listings, so changes of other processes are visible at once. A `Backend` has
the differences between disks, memory and object stores. Publishing does not use the transactions
of fsspec, which all threads share, nor its exclusive create on disks, which has a race.
"""

import os
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tooltrail.artifacts._backend_sink import FsspecSink, why
from tooltrail.artifacts._backends import Backend, LocalBackend, MemoryBackend
from tooltrail.artifacts._connection import Connection
from tooltrail.artifacts._object_backend import ObjectBackend
from tooltrail.artifacts._sink_options import configured, merged, split_bucket
from tooltrail.artifacts._store_errors import as_os_error
from tooltrail.artifacts.paths import check_path
from tooltrail.artifacts.private_files import make_durable_folders
from tooltrail.artifacts.sink import ArtifactSink, SinkCapabilities
from tooltrail.records.errors import InvalidRecordError, UnavailableError

__all__ = ["FsspecSink", "defer_sink", "open_sink"]


def open_sink(url: str, *, create: bool = False) -> ArtifactSink:
    """Open the sink at a folder's path or at a URL.

    Args:
        url: a folder, `file://FOLDER`, `memory://NAME`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`
            or `az://CONTAINER/PREFIX`. A relative folder is relative to the current one. Nothing
            in the URL is percent-decoded. Endpoints and credentials of object stores come from
            the providers' environment variables and from the file `$TOOLTRAIL_SINK_CONFIG`.
        create: make a missing root folder, durably and with mode 0700. An existing folder keeps
            its mode, which decides who may read the objects below it. Buckets are never made: a
            sink cannot choose their owners, regions and rules.

    Raises:
        InvalidRecordError: the URL is empty, of another kind, or contains a user, a password or a
            query; the options for the store are wrong; or an extra is not installed.
        UnavailableError: the root folder or the bucket does not exist (is a disk not mounted?),
            access is refused, or the folder cannot be made.
    """
    site = _site(url)
    backend = site.open_backend(create)
    return FsspecSink(site.url, site.capabilities, lambda: backend)


def defer_sink(url: str, *, mark: str | None = None) -> ArtifactSink:
    """Return the sink at a folder's path or at a URL, to be opened on first use.

    While the sink cannot be opened, each method raises UnavailableError, and each call retries.

    Args:
        url: see `open_sink`.
        mark: path of an object that every right root contains. Without the mark, the root may be
            the mount point of an unmounted disk. Then `put` stores nothing, and a missing object
            raises UnavailableError instead of MissingArtifactError.

    Raises:
        InvalidRecordError: the URL is empty, of another kind, or contains a user, a password or a
            query; or the options for the store cannot be read.
    """
    site = _site(url)
    return FsspecSink(site.url, site.capabilities, partial(site.open_backend, create=False), mark)


class _OpensBackend(Protocol):
    """Raises InvalidRecordError and UnavailableError."""

    def __call__(self, create: bool) -> Backend: ...


class _Site(NamedTuple):
    """The facts that a URL gives about a sink, and the function that opens its backend."""

    url: str
    capabilities: SinkCapabilities
    open_backend: _OpensBackend


def _site(url: str) -> _Site:
    protocol, separator, name = url.partition("://")
    if not separator:
        protocol, name = "file", str(_absolute(url)) if url else ""
    if not name:
        raise InvalidRecordError(f"not an artifact root: {url!r}")
    if protocol == "file":
        return _local_site(name)
    if protocol == "memory":
        return _memory_site(name)
    from tooltrail.artifacts._providers import PROVIDERS  # noqa: PLC0415  slow to import

    if protocol in PROVIDERS:
        return _object_site(protocol, name)
    known = ", ".join(["file", "memory", *PROVIDERS])
    raise InvalidRecordError(f"artifacts cannot be kept at {protocol}://; use one of {known}")


def _local_site(name: str) -> _Site:
    if not name.startswith("/"):
        raise InvalidRecordError(f"not the URL of an absolute folder: 'file://{name}'")
    folder = _absolute(name)

    def open_backend(create: bool) -> Backend:
        try:
            if create:
                make_durable_folders(folder)
            root = Path(os.path.realpath(folder, strict=True))
            next(root.iterdir(), None)
        except OSError as error:
            sentence = f"cannot use {folder} for artifacts: {error.strerror or why(error)}"
            raise UnavailableError(sentence) from error
        except UnicodeEncodeError as error:
            sentence = f"cannot use {folder} for artifacts: set LC_ALL to a locale with UTF-8"
            raise UnavailableError(sentence) from error
        return LocalBackend(root)

    return _Site(f"file://{folder}", LocalBackend.capabilities, open_backend)


def _memory_site(name: str) -> _Site:
    root = "/" + check_path(name.strip("/"))

    def open_backend(create: bool) -> Backend:
        backend = MemoryBackend(_filesystem("memory"), root)
        if create:
            backend.make_root()
        try:
            backend.check_root()
        except FileNotFoundError as error:
            raise UnavailableError(f"there is no folder for artifacts at memory:/{root}") from error
        return backend

    return _Site(f"memory:/{root}", MemoryBackend.capabilities, open_backend)


def _object_site(protocol: str, name: str) -> _Site:
    from tooltrail.artifacts._providers import PROVIDERS  # noqa: PLC0415  see `_site`

    provider = PROVIDERS[protocol]
    bucket, prefix = split_bucket(protocol, name)
    url = f"{protocol}://{bucket}/{prefix}".rstrip("/")
    options = merged(provider.defaults, configured(protocol, PROVIDERS))

    def open_backend(create: bool) -> Backend:  # noqa: ARG001  buckets are never made
        connection = Connection(partial(_connect, protocol, options))
        connection.get()
        backend = ObjectBackend(provider.make_store(connection, bucket), bucket, prefix)
        try:
            backend.check_root()
        except OSError as error:
            _refuse_options(protocol, error.__cause__)
            raise UnavailableError(f"cannot use {url} for artifacts: {why(error)}") from error
        return backend

    return _Site(url, ObjectBackend.capabilities, open_backend)


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
    filesystem.loop.set_exception_handler(_ignore_lost_connection)
    return filesystem


def _ignore_lost_connection(loop: Any, context: dict[str, Any]) -> None:
    """Print nothing for a lost connection; the request that used the connection raises an error.

    aiohttp leaves a second error in a task of its own. asyncio would print that traceback.
    """
    if not isinstance(context.get("exception"), ConnectionError):
        loop.default_exception_handler(context)


def _refuse_options(protocol: str, error: BaseException | None) -> None:
    """Raise if a client refused its options; without its message, which may quote secret values."""
    if isinstance(error, TypeError | ValueError | KeyError):
        raise InvalidRecordError(
            f"the options for {protocol}:// are not understood ({type(error).__name__}):"
            " check the provider's environment variables and $TOOLTRAIL_SINK_CONFIG"
        ) from None


def _absolute(name: str) -> Path:
    # Not resolved: if the user names a symbolic link, the store keeps that name.
    return Path(os.path.abspath(name))  # noqa: PTH100


def _filesystem(protocol: str, **options: object) -> Any:
    import fsspec  # noqa: PLC0415  slow to import, and folders do not need it

    untyped: Any = fsspec
    return untyped.filesystem(
        protocol, skip_instance_cache=True, use_listings_cache=False, **options
    )
