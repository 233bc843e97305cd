from .config_problems import AgentConfigError, AgentConfigWarning, ConfigProblem
from .configuration import AgentConfig, Context, FormatName, Limits, Output, StaticContext, Tier
from .http_models import HttpModel
from .loading import CheckedAgent, check_agents, find_agents, load_agent, read_agent
from .models import ChatModel, ModelError
from .running import ModelFactory, run_agent
from .runs import (
    AgentRun,
    AnswerCame,
    ChunkCame,
    Leg,
    Observer,
    QuestionFailed,
    RunEvent,
    RunFailedError,
)
from .schemas import (
    OutputSchema,
    SchemaChange,
    SchemaFault,
    StrictForm,
    UnsupportedSchemaError,
    compare_schemas,
)
from .session_artifacts import SessionArtifacts
from .statistics import AgentStatistics, agent_statistics
from .submission import SUBMIT_RESULT, submission_tool
from .tools import AgentTool
from .versions import agent_of_document, stored_agent

__all__ = [
    "SUBMIT_RESULT",
    "AgentConfig",
    "AgentConfigError",
    "AgentConfigWarning",
    "AgentRun",
    "AgentStatistics",
    "AgentTool",
    "AnswerCame",
    "ChatModel",
    "CheckedAgent",
    "ChunkCame",
    "ConfigProblem",
    "Context",
    "FormatName",
    "HttpModel",
    "Leg",
    "Limits",
    "ModelError",
    "ModelFactory",
    "Observer",
    "Output",
    "OutputSchema",
    "QuestionFailed",
    "RunEvent",
    "RunFailedError",
    "SchemaChange",
    "SchemaFault",
    "SessionArtifacts",
    "StaticContext",
    "StrictForm",
    "Tier",
    "UnsupportedSchemaError",
    "agent_of_document",
    "agent_statistics",
    "check_agents",
    "compare_schemas",
    "find_agents",
    "load_agent",
    "read_agent",
    "run_agent",
    "stored_agent",
    "submission_tool",
]
