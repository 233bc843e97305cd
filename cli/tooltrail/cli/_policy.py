"""The budgets that a command line names: a TOML file."""

from pathlib import Path

import click

from tooltrail.records import (
    InvalidRecordError,
    NotFoundError,
    Policy,
    default_families,
    policy_from_toml,
)


def read_policy(path: Path, tool_name: str | None = None) -> Policy:
    """The policy in a file.

    Args:
        path: of the file.
        tool_name: of the tool that is to be recorded as a command, if one is.

    Raises:
        click.UsageError: the file cannot be read, is no policy, or gives the tool to a family that
            takes no commands.
    """
    try:
        policy = policy_from_toml(path.read_text(encoding="utf-8"), default_families())
    except OSError as error:
        raise click.UsageError(f"policy {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise click.UsageError(f"policy {path} is not UTF-8") from error
    except (InvalidRecordError, NotFoundError) as error:
        raise click.UsageError(f"policy {path}: {error}") from error
    tool = None if tool_name is None else policy.tools.get(tool_name)
    if tool is not None and tool.family not in (None, "command"):
        raise click.UsageError(
            f"policy {path} gives the tool {tool_name!r} to the family {tool.family!r}, "
            "but exec records commands"
        )
    return policy
