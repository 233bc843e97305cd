"""The schema as typed classes, one module for each group of tables."""

from tooltrail.store.tables._base import Base
from tooltrail.store.tables.agents import AgentLegRow, AgentOutcomeRow, AgentRow
from tooltrail.store.tables.evidence import (
    CheckpointRow,
    HoldRow,
    IdempotencyKeyRow,
    LedgerEntryRow,
    LedgerHeadRow,
    StoreInfoRow,
    TombstoneRow,
)
from tooltrail.store.tables.invocations import InvocationRow, PolicyRow, ToolRow
from tooltrail.store.tables.maintenance import MaintenanceRunRow
from tooltrail.store.tables.payloads import ArtifactRow, BodyRow, InvocationArtifactRow
from tooltrail.store.tables.ranges import RangeTraitRow
from tooltrail.store.tables.sessions import (
    CallOriginRow,
    MessageDocumentRow,
    MessageRow,
    SessionRow,
    ToolOfferRow,
)
from tooltrail.store.tables.surfaces import (
    CanonicalResultRow,
    CompleteOutputRow,
    OmissionRow,
    OutputStreamRow,
    ReceiptRow,
    RedactionRow,
    StructuredOutputRow,
)

metadata = Base.metadata

DERIVED = frozenset({RangeTraitRow.__tablename__})
"""Tables without evidence, which are made anew from the others."""

__all__ = [
    "DERIVED",
    "AgentLegRow",
    "AgentOutcomeRow",
    "AgentRow",
    "ArtifactRow",
    "Base",
    "BodyRow",
    "CallOriginRow",
    "CanonicalResultRow",
    "CheckpointRow",
    "CompleteOutputRow",
    "HoldRow",
    "IdempotencyKeyRow",
    "InvocationArtifactRow",
    "InvocationRow",
    "LedgerEntryRow",
    "LedgerHeadRow",
    "MaintenanceRunRow",
    "MessageDocumentRow",
    "MessageRow",
    "OmissionRow",
    "OutputStreamRow",
    "PolicyRow",
    "RangeTraitRow",
    "ReceiptRow",
    "RedactionRow",
    "SessionRow",
    "StoreInfoRow",
    "StructuredOutputRow",
    "TombstoneRow",
    "ToolOfferRow",
    "ToolRow",
    "metadata",
]
