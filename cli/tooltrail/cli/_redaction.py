"""The secrets that commands replace: well-known credentials, and what a file of the user names.

environment = ["DEPLOY_TOKEN"]       # the values of these variables

[patterns]
internal-key = "INT-[0-9]{8}"        # regular expressions of bytes, by the name of their rule
"""

import os
from collections.abc import Mapping
from typing import Any, cast

from tooltrail.records.errors import InvalidRecordError
from tooltrail.redaction.rules import RuleSet, default_rules

VARIABLE = "TOOLTRAIL_REDACTION"
"""Environment variable that names the file of the user."""


def used_rules(environment: Mapping[str, str] = os.environ) -> RuleSet:
    """The rules for a command.

    Raises:
        InvalidRecordError: the file of the user cannot be read, or holds an invalid rule.
    """
    name = environment.get(VARIABLE)
    if not name:
        return default_rules()
    import tomllib  # noqa: PLC0415  only for a file of the user

    try:
        with open(name, "rb") as file:  # noqa: PTH123  pathlib takes 5 ms
            settings = tomllib.load(file)
        patterns, names = settings.pop("patterns", {}), settings.pop("environment", [])
        if settings:
            raise ValueError(f"unknown member {next(iter(settings))}")  # noqa: TRY301
        found = {one: environment[one] for one in cast("list[str]", names) if environment.get(one)}
        values = {one.lower().replace("_", "-"): value for one, value in found.items()}
        return default_rules().extended(patterns=cast("dict[str, Any]", patterns), values=values)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InvalidRecordError(f"${VARIABLE}: {name} cannot be used: {error}") from error
