"""The policy file that a command line names."""

from pathlib import Path

from tooltrail.cli._config_files import read_config
from tooltrail.records import (
    InvalidRecordError,
    NotFoundError,
    Policy,
    default_families,
    policy_from_toml,
)


def read_policy(path: Path, tool_name: str | None = None) -> Policy:
    """Read a policy from a TOML file, for commands that are recorded with this tool name."""
    try:
        policy = policy_from_toml(read_config(str(path)).decode(), default_families())
    except OSError as error:
        raise InvalidRecordError(f"policy {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidRecordError(f"policy {path} is not UTF-8") from error
    except (InvalidRecordError, NotFoundError) as error:
        raise InvalidRecordError(f"policy {path}: {error}") from error
    tool = None if tool_name is None else policy.tools.get(tool_name)
    if tool is not None and tool.family not in (None, "command"):
        raise InvalidRecordError(
            f"policy {path} assigns the tool {tool_name!r} to the family {tool.family!r}, "
            "but exec records commands"
        )
    return policy
