"""What a family is made of, for those that live outside of this package.

All that a budget, a complete output, a canonical result, a projector and a renderer need can be
imported from here. `register_family` makes the family known. CONTRIBUTING.md says how to write one.
"""

from tooltrail.records._model import DigestField, Message, Record, Sentence
from tooltrail.records.budgets import (
    FRAME_CHARS,
    MIN_SHARE_CHARS,
    Budget,
    ItemCount,
    PreviewChars,
    ReceiptChars,
)
from tooltrail.records.catalog import default_families, register_family
from tooltrail.records.cutting import NOT_THERE, Cutter, Shown
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.envelope import ArtifactReference, CanonicalResult, Facts, FamilyOutput
from tooltrail.records.families._paths import FilePath, one_line_path, path_label
from tooltrail.records.families._shared import (
    NAME_CHARS,
    SENTENCE_CHARS,
    BoundedResult,
    Identifier,
    SparseRecord,
    artifact_lines,
    artifact_section,
    bound_texts,
    bounded,
    hidden_lines,
    joined,
    one_line,
    receipt,
    structured_fields,
)
from tooltrail.records.families._tasks import TaskHandle, TaskKind, TaskState
from tooltrail.records.families._web import Moment, Url, spell_moment
from tooltrail.records.family import Family, FamilyRegistry, Projector, Renderer
from tooltrail.records.previews import Encoding
from tooltrail.records.readable_json import readable
from tooltrail.records.sharing import fair_shares
from tooltrail.records.streams import Count, StreamRecord

__all__ = [
    "FRAME_CHARS",
    "MIN_SHARE_CHARS",
    "NAME_CHARS",
    "NOT_THERE",
    "SENTENCE_CHARS",
    "ArtifactReference",
    "BoundedResult",
    "Budget",
    "CanonicalResult",
    "Count",
    "Cutter",
    "Digest",
    "DigestField",
    "Encoding",
    "Facts",
    "Family",
    "FamilyOutput",
    "FamilyRegistry",
    "FilePath",
    "Identifier",
    "ItemCount",
    "Message",
    "Moment",
    "PreviewChars",
    "Projector",
    "ReceiptChars",
    "Record",
    "Renderer",
    "Sentence",
    "Shown",
    "SparseRecord",
    "StreamRecord",
    "TaskHandle",
    "TaskKind",
    "TaskState",
    "Url",
    "artifact_lines",
    "artifact_section",
    "bound_texts",
    "bounded",
    "default_families",
    "digest_of",
    "fair_shares",
    "hidden_lines",
    "joined",
    "one_line",
    "one_line_path",
    "path_label",
    "readable",
    "receipt",
    "register_family",
    "spell_moment",
    "structured_fields",
]
