"""`tooltrail tail`: the same as `tooltrail artifact tail`."""

from tooltrail.cli.commands.artifact_command import tail as command

__all__ = ["command"]
