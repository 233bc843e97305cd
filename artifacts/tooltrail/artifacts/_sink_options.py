"""Parse the URL of an object store, and read the options of its client.

A URL contains a bucket and a prefix and nothing else, because URLs are stored and printed. A TOML
file has the options for which providers have no environment variables.
"""

import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from tooltrail.artifacts.paths import check_path
from tooltrail.records.errors import InvalidRecordError, UnavailableError

CONFIG_VARIABLE = "TOOLTRAIL_SINK_CONFIG"
"""The variable that names the TOML file. The tables `[s3]`, `[gs]` and `[az]` have options of the
fsspec file system. The values may be secret: only the client receives them."""

RESERVED = frozenset(
    {"asynchronous", "loop", "skip_instance_cache", "use_listings_cache", "version_aware"}
)
"""Options that the sink sets itself."""

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,221}")


def split_bucket(protocol: str, name: str) -> tuple[str, str]:
    """The bucket and the prefix of a URL without its `protocol://`.

    Returns:
        The bucket, and the prefix, which is empty or ends in a slash.

    Raises:
        InvalidRecordError: the URL contains something else, such as a password or a query. The
            message does not quote the URL.
    """
    bucket, _, prefix = name.rstrip("/").partition("/")
    if not _BUCKET.fullmatch(bucket) or "?" in prefix or "#" in prefix:
        raise InvalidRecordError(
            f"not an artifact root: a URL of this kind is {protocol}://BUCKET or"
            f" {protocol}://BUCKET/PREFIX, without a user, a password or a query"
        )
    return bucket, f"{check_path(prefix)}/" if prefix else ""


def configured(protocol: str, known: Collection[str]) -> dict[str, Any]:
    """The options of one protocol from the file that `$TOOLTRAIL_SINK_CONFIG` names.

    Raises:
        InvalidRecordError: the file is not valid. The message does not quote its values.
        UnavailableError: the file cannot be read.
    """
    named = os.environ.get(CONFIG_VARIABLE)
    if not named:
        return {}
    tables = _read(Path(named))
    for table, options in tables.items():
        if table not in known or not isinstance(options, dict):
            raise InvalidRecordError(
                f"sink configuration {named} may have the tables {', '.join(known)}, not {table!r}"
            )
    chosen: dict[str, Any] = tables.get(protocol, {})
    if reserved := RESERVED.intersection(chosen):
        raise InvalidRecordError(
            f"sink configuration {named} cannot set {', '.join(sorted(reserved))} of {protocol}"
        )
    return chosen


def merged(defaults: dict[str, Any], chosen: dict[str, Any]) -> dict[str, Any]:
    """The defaults, overridden by the chosen options; one level of nested tables is merged."""
    result = {**defaults, **chosen}
    for name, default in defaults.items():
        if isinstance(default, dict) and isinstance(result[name], dict):
            result[name] = {**default, **result[name]}
    return result


def _read(path: Path) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415  slow, and few stores have this file

    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise UnavailableError(
            f"sink configuration {path} cannot be read: {error.strerror}"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        where = re.search(r"\(at [^()]*\)$", str(error))
        raise InvalidRecordError(
            f"sink configuration {path} is not TOML {where[0] if where else ''}".rstrip()
        ) from None
