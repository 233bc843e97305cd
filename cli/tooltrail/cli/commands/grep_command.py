"""`tooltrail grep`: the same as `tooltrail artifact grep`."""

from tooltrail.cli.commands.artifact_command import grep as command

__all__ = ["command"]
