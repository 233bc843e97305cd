from ._clock import new_id, now
from .checking import check_database
from .commitments import RecordCheck, iter_record_checks
from .engine import EngineFacts, engine_facts
from .feed import InvocationFeed
from .filters import InvocationFilter
from .info import StoreInfo
from .limits import StoreLimits
from .lookup import ArtifactPlace, look_up_artifact
from .opening import (
    create_store,
    open_store,
    spool_folder,
    store_revision,
    upgrade_store,
    user_spool,
)
from .pruning import PruningReport, prune
from .pruning_plan import DEFAULT_GRACE, Amount, PruningPlan, plan_pruning
from .reader import Reader
from .recorder import Finished, Invocation, Session
from .recovering import RepairedFolder, RepairReport, recoverable, repair
from .relocating import RelocationReport, relocate
from .rerendering import Rerendering, RerenderingState, Wording, iter_rerenderings, rerender
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
    WaitingStream,
)

__all__ = [
    "DEFAULT_GRACE",
    "Amount",
    "ArtifactPlace",
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
    "WaitingStream",
    "Wording",
    "check_database",
    "create_store",
    "engine_facts",
    "iter_record_checks",
    "iter_rerenderings",
    "look_up_artifact",
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
