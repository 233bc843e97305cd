"""Where records are kept: recording, reading, creating and upgrading a store."""

from tooltrail.store._clock import new_id, now
from tooltrail.store.checking import check_database
from tooltrail.store.commitments import RecordCheck, iter_record_checks
from tooltrail.store.engine import EngineFacts, engine_facts
from tooltrail.store.feed import InvocationFeed
from tooltrail.store.filters import InvocationFilter
from tooltrail.store.info import StoreInfo
from tooltrail.store.limits import StoreLimits
from tooltrail.store.opening import (
    create_store,
    open_store,
    spool_folder,
    store_revision,
    upgrade_store,
    user_spool,
)
from tooltrail.store.pruning import PruningReport, prune
from tooltrail.store.pruning_plan import DEFAULT_GRACE, Amount, PruningPlan, plan_pruning
from tooltrail.store.reader import Reader
from tooltrail.store.recorder import Finished, Invocation, Session
from tooltrail.store.recovering import RepairedFolder, RepairReport, recoverable, repair
from tooltrail.store.relocating import RelocationReport, relocate
from tooltrail.store.rerendering import (
    Rerendering,
    RerenderingState,
    Wording,
    iter_rerenderings,
    rerender,
)
from tooltrail.store.store import Store
from tooltrail.store.views import (
    ArtifactView,
    InvocationDetail,
    InvocationView,
    MessageView,
    Page,
    ReceiptView,
    SessionView,
    StoreCounts,
    StreamView,
)

__all__ = [
    "DEFAULT_GRACE",
    "Amount",
    "ArtifactView",
    "EngineFacts",
    "Finished",
    "Invocation",
    "InvocationDetail",
    "InvocationFeed",
    "InvocationFilter",
    "InvocationView",
    "MessageView",
    "Page",
    "PruningPlan",
    "PruningReport",
    "Reader",
    "ReceiptView",
    "RecordCheck",
    "RelocationReport",
    "RepairReport",
    "RepairedFolder",
    "Rerendering",
    "RerenderingState",
    "Session",
    "SessionView",
    "Store",
    "StoreCounts",
    "StoreInfo",
    "StoreLimits",
    "StreamView",
    "Wording",
    "check_database",
    "create_store",
    "engine_facts",
    "iter_record_checks",
    "iter_rerenderings",
    "new_id",
    "now",
    "open_store",
    "plan_pruning",
    "prune",
    "recoverable",
    "relocate",
    "repair",
    "rerender",
    "spool_folder",
    "store_revision",
    "upgrade_store",
    "user_spool",
]
