"""What a record is: envelope, families, projection, rendering, previews, canonical JSON, digests.

Everything here is pure: no I/O, no clock, no SQL. The same inputs give the same bytes.
"""

from tooltrail.records.digests import Digest, digest_from_hex, digest_of, hex_of, parse_digest
from tooltrail.records.envelope import (
    SUMMARY_CHARS,
    ArtifactReference,
    CanonicalResult,
    CompleteOutput,
    InvocationState,
    Status,
)
from tooltrail.records.errors import (
    AmbiguousNameError,
    DamageError,
    DigestMismatchError,
    InvalidRecordError,
    InvocationFinishedError,
    MissingArtifactError,
    NotFoundError,
    PathEscapeError,
    SchemaMismatchError,
    SessionClosedError,
    StoreExistsError,
    StoreNotFoundError,
    TooltrailError,
    UnavailableError,
)
from tooltrail.records.families import (
    CommandOutput,
    ContentItem,
    FamilyRegistry,
    GenericOutput,
    command_completed,
    default_families,
    generic_completed,
)
from tooltrail.records.ids import IdFactory, parse_id, short_id
from tooltrail.records.ledger import GENESIS, LedgerEntry
from tooltrail.records.omissions import Omission
from tooltrail.records.policy import (
    DEFAULT_POLICY,
    CommandBudget,
    ErrorBudget,
    GenericBudget,
    Policy,
)
from tooltrail.records.previews import Preview, preview
from tooltrail.records.projection import (
    ArtifactList,
    ArtifactPublisher,
    Family,
    Projected,
    Projection,
    Projector,
    Receipt,
    Renderer,
    project,
    render,
)
from tooltrail.records.streams import StreamRecord, count_lines
from tooltrail.records.tool_calls import ToolCall
from tooltrail.records.tool_errors import ErrorKind, ToolError

__all__ = [
    "DEFAULT_POLICY",
    "GENESIS",
    "SUMMARY_CHARS",
    "AmbiguousNameError",
    "ArtifactList",
    "ArtifactPublisher",
    "ArtifactReference",
    "CanonicalResult",
    "CommandBudget",
    "CommandOutput",
    "CompleteOutput",
    "ContentItem",
    "DamageError",
    "Digest",
    "DigestMismatchError",
    "ErrorBudget",
    "ErrorKind",
    "Family",
    "FamilyRegistry",
    "GenericBudget",
    "GenericOutput",
    "IdFactory",
    "InvalidRecordError",
    "InvocationFinishedError",
    "InvocationState",
    "LedgerEntry",
    "MissingArtifactError",
    "NotFoundError",
    "Omission",
    "PathEscapeError",
    "Policy",
    "Preview",
    "Projected",
    "Projection",
    "Projector",
    "Receipt",
    "Renderer",
    "SchemaMismatchError",
    "SessionClosedError",
    "Status",
    "StoreExistsError",
    "StoreNotFoundError",
    "StreamRecord",
    "ToolCall",
    "ToolError",
    "TooltrailError",
    "UnavailableError",
    "command_completed",
    "count_lines",
    "default_families",
    "digest_from_hex",
    "digest_of",
    "generic_completed",
    "hex_of",
    "parse_digest",
    "parse_id",
    "preview",
    "project",
    "render",
    "short_id",
]
