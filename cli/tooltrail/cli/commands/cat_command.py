"""`tooltrail cat`: the same as `tooltrail artifact cat`."""

from tooltrail.cli.commands.artifact_command import cat as command

__all__ = ["command"]
