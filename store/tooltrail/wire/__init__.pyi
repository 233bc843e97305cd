from ._descriptions import describe_block
from .capabilities import Capabilities
from .exports import (
    DEFAULT_EXPORT_POLICY,
    Change,
    ChangeKind,
    Export,
    ExportPolicy,
    ExportRefusedError,
    ExportReport,
)
from .formats import FORMAT_MODULES, Assembler, WireFormat, wire_format
from .members import JsonObject
from .requests import SCHEMA_NAME, StructuredFormat, ToolChoice
from .responses import ProviderFailure, Response
from .streaming import Chunk, ResponseStream, event_of, read_stream
from .usage import TokenCounts

__all__ = [
    "DEFAULT_EXPORT_POLICY",
    "FORMAT_MODULES",
    "SCHEMA_NAME",
    "Assembler",
    "Capabilities",
    "Change",
    "ChangeKind",
    "Chunk",
    "Export",
    "ExportPolicy",
    "ExportRefusedError",
    "ExportReport",
    "JsonObject",
    "ProviderFailure",
    "Response",
    "ResponseStream",
    "StructuredFormat",
    "TokenCounts",
    "ToolChoice",
    "WireFormat",
    "describe_block",
    "event_of",
    "read_stream",
    "wire_format",
]
