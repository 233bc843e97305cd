"""Tools for the files of one folder, which they never leave, and for commands in it."""

from tooltrail.agents.workspace.workspace_tools import workspace_tools

__all__ = ["workspace_tools"]
