from .making import workspace_tools

__all__ = ["workspace_tools"]
