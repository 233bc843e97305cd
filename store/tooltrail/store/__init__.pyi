from tooltrail.journal.answers import (
    RecordedAnswer,
    RecordedStream,
    record_response,
    record_stream,
)
from tooltrail.journal.clock import new_id, now
from tooltrail.journal.ended_calls import EndedCall
from tooltrail.journal.invocation import Finished, Invocation
from tooltrail.journal.log import Acknowledge
from tooltrail.journal.session import Session
from tooltrail.journal.tool_results import tool_results_message

from .engines.database import Database
from .engines.targets import parse_target
from .filters import InvocationFilter
from .info import StoreInfo
from .ingest.ingester import Ingested, Ingester
from .keep.backing_up import Backup, back_up_store
from .keep.checking import iter_problems
from .keep.condition import (
    Condition,
    JournalState,
    PendingArtifact,
    RejectedFact,
    read_condition,
)
from .keep.maintenance import Amount
from .keep.pruning import DEFAULT_GRACE, PruningPlan, PruningReport, plan_pruning, prune
from .keep.relocating import RelocationReport, relocate
from .keep.rerendering import RenderedText, Rerendering, RerenderingState, rerender
from .keep.upgrading import upgrade_store
from .opening import create_store, open_existing, open_store, store_revision
from .read.agent_runs import (
    AgentVersionView,
    AttemptView,
    LegView,
    agent_version,
    agent_versions,
    iter_accepted_values,
    iter_legs,
)
from .read.feed import InvocationFeed
from .read.reader import Reader
from .read.retries import Retried
from .read.statistics import CallStatistics
from .store import Store
from .views import (
    ArtifactView,
    InvocationDetail,
    InvocationView,
    MessageView,
    Page,
    ReceiptView,
    SessionView,
    StoreCounts,
    StreamView,
    ToolView,
)

__all__ = [
    "DEFAULT_GRACE",
    "Acknowledge",
    "AgentVersionView",
    "Amount",
    "ArtifactView",
    "AttemptView",
    "Backup",
    "CallStatistics",
    "Condition",
    "Database",
    "EndedCall",
    "Finished",
    "Ingested",
    "Ingester",
    "Invocation",
    "InvocationDetail",
    "InvocationFeed",
    "InvocationFilter",
    "InvocationView",
    "JournalState",
    "LegView",
    "MessageView",
    "Page",
    "PendingArtifact",
    "PruningPlan",
    "PruningReport",
    "Reader",
    "ReceiptView",
    "RecordedAnswer",
    "RecordedStream",
    "RejectedFact",
    "RelocationReport",
    "RenderedText",
    "Rerendering",
    "RerenderingState",
    "Retried",
    "Session",
    "SessionView",
    "Store",
    "StoreCounts",
    "StoreInfo",
    "StreamView",
    "ToolView",
    "agent_version",
    "agent_versions",
    "back_up_store",
    "create_store",
    "iter_accepted_values",
    "iter_legs",
    "iter_problems",
    "new_id",
    "now",
    "open_existing",
    "open_store",
    "parse_target",
    "plan_pruning",
    "prune",
    "read_condition",
    "record_response",
    "record_stream",
    "relocate",
    "rerender",
    "store_revision",
    "tool_results_message",
    "upgrade_store",
]
