from .making import workspace_tools
from .session_artifacts import SessionArtifacts

__all__ = ["SessionArtifacts", "workspace_tools"]
