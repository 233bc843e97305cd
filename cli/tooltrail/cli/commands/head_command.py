"""`tooltrail head`: the same as `tooltrail artifact head`."""

from tooltrail.cli.commands.artifact_command import head as command

__all__ = ["command"]
