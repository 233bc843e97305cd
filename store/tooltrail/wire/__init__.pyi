from ._descriptions import describe_block
from ._identifiers import spelled_name, split_name
from .capabilities import Capabilities
from .exports import (
    DEFAULT_EXPORT_POLICY,
    Change,
    ChangeKind,
    Export,
    ExportPolicy,
    ExportRefusedError,
    ExportReport,
    ToolChoice,
)
from .formats import FORMAT_MODULES, Assembler, WireFormat, wire_format
from .members import JsonObject
from .responses import ProviderFailure, Response
from .streaming import Chunk, ResponseStream, event_of, read_stream
from .tool_results import complete_output_of, read_tool_result
from .usage import TokenCounts

__all__ = [
    "DEFAULT_EXPORT_POLICY",
    "FORMAT_MODULES",
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
    "TokenCounts",
    "ToolChoice",
    "WireFormat",
    "complete_output_of",
    "describe_block",
    "event_of",
    "read_stream",
    "read_tool_result",
    "spelled_name",
    "split_name",
    "wire_format",
]
