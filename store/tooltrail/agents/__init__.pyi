from .configuration import AgentConfig, Context, Limits, Output, StaticContext, Tier
from .models import ChatModel, ModelError
from .schemas import OutputSchema, SchemaFault, UnsupportedSchemaError

__all__ = [
    "AgentConfig",
    "ChatModel",
    "Context",
    "Limits",
    "ModelError",
    "Output",
    "OutputSchema",
    "SchemaFault",
    "StaticContext",
    "Tier",
    "UnsupportedSchemaError",
]
