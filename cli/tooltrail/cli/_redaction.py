"""The secrets that commands replace: well-known credentials, and what a file of the user names.

environment = ["DEPLOY_TOKEN"]       # the values of these variables

[patterns]
internal-key = "INT-[0-9]{8}"        # regular expressions of bytes, by the name of their rule
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any, cast

from tooltrail.cli._config_files import read_config
from tooltrail.records.errors import InvalidRecordError
from tooltrail.redaction.rules import RuleSet, default_rules, refuse_short_value

VARIABLE = "TOOLTRAIL_REDACTION"
"""Environment variable that names the file of the user."""


def used_rules() -> RuleSet:
    """The rules for a command.

    Raises:
        InvalidRecordError: the file of the user cannot be read, or holds an invalid rule.
    """
    if not (name := os.environ.get(VARIABLE)):
        return default_rules()
    import tomllib  # noqa: PLC0415  only for a file of the user

    try:
        patterns, names = _read(tomllib.loads(read_config(name).decode()))
        return default_rules().extended(patterns=patterns, values=_values(names, os.environ))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", error)
        raise InvalidRecordError(f"${VARIABLE}: {name} cannot be used: {reason}") from error


def _values(names: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The values of variables that are not empty, by the name of their rule.

    Raises:
        ValueError: a value is too short, or two variables have one rule.
    """
    values: dict[str, str] = {}
    for name in names:
        rule, value = name.lower().replace("_", "-").strip("-"), environment.get(name)
        if not value:
            continue
        refuse_short_value(os.fsencode(value), f"the value of ${name}")
        if values.setdefault(rule, value) != value:
            raise ValueError(f"${name} and another variable have the same rule, {rule}")
    return values


def _read(settings: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """The patterns by name, and the names of variables.

    Raises:
        ValueError: a member is unknown, or has another type.
    """
    if unknown := settings.keys() - {"patterns", "environment"}:
        raise ValueError(f"unknown member {min(unknown)}")
    patterns: Any = settings.get("patterns", {})
    names: Any = settings.get("environment", [])
    if not (isinstance(patterns, dict) and isinstance(names, list)):
        raise ValueError("patterns must be a table, and environment a list")  # noqa: TRY004
    texts = [*cast("dict[str, object]", patterns).values(), *cast("list[object]", names)]
    if not all(isinstance(one, str) for one in texts):
        raise ValueError("patterns and names of variables must be texts")
    return cast("dict[str, str]", patterns), cast("list[str]", names)
