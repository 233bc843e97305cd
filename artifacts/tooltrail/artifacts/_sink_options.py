"""Where an object store's sink is, and the options its client is opened with.

Both come from people: a URL that names a bucket and nothing else, because URLs are stored and
printed, and a TOML file for what the providers' own environment variables do not say.
"""

import os
import re
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from tooltrail.artifacts.paths import check_path
from tooltrail.records.errors import InvalidRecordError, UnavailableError

CONFIG_VARIABLE = "TOOLTRAIL_SINK_CONFIG"
"""Names the TOML file; a table for each protocol, `[s3]`, `[gs]`, `[az]`, holds options of the
fsspec file system. Its values may be secret: they are given to the client and to nobody else."""

RESERVED = frozenset(
    {"asynchronous", "loop", "skip_instance_cache", "use_listings_cache", "version_aware"}
)
"""Options that a sink itself decides about."""

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,221}")


def split_bucket(protocol: str, name: str) -> tuple[str, str]:
    """The bucket and the prefix of a URL without its `protocol://`.

    Returns:
        The bucket, and the prefix, which is empty or ends in a slash.

    Raises:
        InvalidRecordError: there is something else in the URL, such as a password or a query,
            which is not repeated.
    """
    bucket, _, prefix = name.rstrip("/").partition("/")
    if not _BUCKET.fullmatch(bucket) or "?" in prefix or "#" in prefix:
        raise InvalidRecordError(
            f"not a place for artifacts: a URL of this kind is {protocol}://BUCKET or"
            f" {protocol}://BUCKET/PREFIX, without a user, a password or a query"
        )
    return bucket, f"{check_path(prefix)}/" if prefix else ""


def configured(protocol: str, known: Collection[str]) -> dict[str, Any]:
    """The options of one protocol from the file that `$TOOLTRAIL_SINK_CONFIG` names.

    Raises:
        InvalidRecordError: the file is not what it should be; no value in it is repeated.
        UnavailableError: the file cannot be read.
    """
    named = os.environ.get(CONFIG_VARIABLE)
    if not named:
        return {}
    tables = _read(Path(named))
    for table, options in tables.items():
        if table not in known or not isinstance(options, dict):
            raise InvalidRecordError(
                f"sink configuration {named} may hold the tables {', '.join(known)}: {table!r}"
            )
    chosen: dict[str, Any] = tables.get(protocol, {})
    if reserved := RESERVED.intersection(chosen):
        raise InvalidRecordError(
            f"sink configuration {named} cannot set {', '.join(sorted(reserved))} of {protocol}"
        )
    return chosen


def merged(defaults: dict[str, Any], chosen: dict[str, Any]) -> dict[str, Any]:
    """Defaults with what was chosen in their place, in tables within tables too."""
    result = {**defaults, **chosen}
    for name, default in defaults.items():
        if isinstance(default, dict) and isinstance(result[name], dict):
            result[name] = {**default, **result[name]}
    return result


def _read(path: Path) -> dict[str, Any]:
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
