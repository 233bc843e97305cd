"""The supported object stores, by the protocol of their URLs."""

import logging
from collections.abc import Callable
from typing import Any

from tooltrail.artifacts import _azure, _google, _s3
from tooltrail.artifacts._connection import Connection
from tooltrail.artifacts._object_backend import ObjectStore
from tooltrail.records.frozen import Frozen


class Provider(Frozen):
    """How one kind of object store is opened.

    Attributes:
        extra: extra of this package that installs the client.
        defaults: default options of its fsspec file system.
        make_store: makes a store from a connection and the name of a bucket.
        prepare: called with each new file system.
    """

    extra: str
    defaults: dict[str, Any]
    make_store: Callable[[Connection[Any], str], ObjectStore]
    prepare: Callable[[Any], None]


def _limit_retries(filesystem: Any) -> None:
    filesystem.retries = _s3.RETRIES


def _silence_log(_: Any) -> None:
    # gcsfs also logs the errors that it raises, with upload URLs that work without credentials.
    # Without a configuration of logging, Python prints logged errors to stderr.
    logging.getLogger("gcsfs").addHandler(logging.NullHandler())


def _do_nothing(_: Any) -> None:
    pass


PROVIDERS = {
    "s3": Provider("s3", _s3.DEFAULTS, _s3.S3Store, _limit_retries),
    "gs": Provider("gcs", _google.DEFAULTS, _google.GoogleStore, _silence_log),
    "az": Provider("azure", _azure.DEFAULTS, _azure.AzureStore, _do_nothing),
}
