"""The object stores that are known, by the protocol of their URLs."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tooltrail.artifacts import _azure, _google, _s3
from tooltrail.artifacts._connection import Connection
from tooltrail.artifacts._object_place import ObjectStore


@dataclass(frozen=True, slots=True)
class Provider:
    """How one kind of object store is opened.

    Attributes:
        extra: of this package, with the client.
        defaults: options of its fsspec file system.
        make_store: from a connection and the name of a bucket.
        prepare: is given each new file system.
    """

    extra: str
    defaults: dict[str, Any]
    make_store: Callable[[Connection[Any], str], ObjectStore]
    prepare: Callable[[Any], None]


def _limit_retries(filesystem: Any) -> None:
    filesystem.retries = _s3.RETRIES


def _keep_quiet(_: Any) -> None:
    # gcsfs logs what it also raises as errors, with URLs that open uploads to whoever has them;
    # where nobody has set logging up, Python prints errors to stderr.
    logging.getLogger("gcsfs").addHandler(logging.NullHandler())


def _leave(_: Any) -> None:
    pass


PROVIDERS = {
    "s3": Provider("s3", _s3.DEFAULTS, _s3.S3Store, _limit_retries),
    "gs": Provider("gcs", _google.DEFAULTS, _google.GoogleStore, _keep_quiet),
    "az": Provider("azure", _azure.DEFAULTS, _azure.AzureStore, _leave),
}
