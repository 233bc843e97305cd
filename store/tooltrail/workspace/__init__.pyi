from .making import workspace_tools as workspace_tools
