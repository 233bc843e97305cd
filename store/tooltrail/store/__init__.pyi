from tooltrail.journal.answers import (
    RecordedAnswer,
    RecordedStream,
    record_response,
    record_stream,
)
from tooltrail.journal.clock import new_id, now
from tooltrail.journal.tool_results import tool_results_message

from ._outbox.delivering import Delivery, KeptEntry
from ._repairing.answers import CutOffAnswer
from ._repairing.repaired import RepairedFolder
from ._roots.maintenance import refuse_read_only
from .agent_runs import agent_version, agent_versions, iter_accepted_values, iter_legs
from .agent_views import AcceptedValue, AgentVersionView, AttemptView, LegView
from .asides import Aside, WantedStore, open_aside, wanted_store
from .backing_up import Backup, back_up_store
from .backlog import (
    Backlog,
    ForeignOutbox,
    acknowledge_losses,
    find_backlog,
    find_backlog_of_place,
    is_waiting,
)
from .checking import check_database, iter_problems
from .commitments import RecordCheck, iter_record_checks
from .durability import DURABILITIES, Durability
from .ended import EndedCall, RecordedCalls
from .engine import EngineFacts, engine_facts
from .entries import (
    CallEnded,
    CallStarted,
    EndedStream,
    MessageAdded,
    SessionEnded,
    SessionOpened,
    SpooledContent,
)
from .feed import InvocationFeed
from .filters import InvocationFilter
from .finished import Finished
from .indexing import index_invocations
from .info import StoreInfo
from .invocation import Invocation
from .limits import StoreLimits
from .local_room import LocalRoom, find_local_room
from .lookup import ArtifactPlace, look_up_artifact, look_up_store_id
from .message_commitments import iter_message_checks
from .newest import Newest, look_up_newest
from .on_unavailable import OnUnavailable
from .opening import (
    create_store,
    database_to_check,
    open_store,
    spool_folder,
    store_revision,
)
from .outbox import Outbox
from .pruning import PruningReport, prune
from .pruning_plan import DEFAULT_GRACE, Amount, PruningPlan, plan_pruning
from .reader import Reader
from .recorder import Session
from .recovering import RepairReport, repair
from .relocating import relocate
from .relocation_report import RelocationReport
from .rerendering import Rerendering, RerenderingState, Wording, iter_rerenderings, rerender
from .spools import user_spool, user_spools
from .store import Store
from .unsettled import Repairable, Unended, find_repairable, find_unended
from .upgrading import (
    Downgrade,
    Loss,
    downgrade_store,
    plan_downgrade,
    upgrade_store,
)
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
    WaitingStream,
)
from .waiting import ASIDE_STATES, SetAside, kept_folders, set_aside

__all__ = [
    "ASIDE_STATES",
    "DEFAULT_GRACE",
    "DURABILITIES",
    "AcceptedValue",
    "AgentVersionView",
    "Amount",
    "ArtifactPlace",
    "ArtifactView",
    "Aside",
    "AttemptView",
    "Backlog",
    "Backup",
    "CallEnded",
    "CallStarted",
    "CutOffAnswer",
    "Delivery",
    "Downgrade",
    "Durability",
    "EndedCall",
    "EndedStream",
    "EngineFacts",
    "Finished",
    "ForeignOutbox",
    "Invocation",
    "InvocationDetail",
    "InvocationFeed",
    "InvocationFilter",
    "InvocationView",
    "KeptEntry",
    "LegView",
    "LocalRoom",
    "Loss",
    "MessageAdded",
    "MessageView",
    "Newest",
    "OnUnavailable",
    "Outbox",
    "Page",
    "PruningPlan",
    "PruningReport",
    "Reader",
    "ReceiptView",
    "RecordCheck",
    "RecordedAnswer",
    "RecordedCalls",
    "RecordedStream",
    "RelocationReport",
    "RepairReport",
    "Repairable",
    "RepairedFolder",
    "Rerendering",
    "RerenderingState",
    "Session",
    "SessionEnded",
    "SessionOpened",
    "SessionView",
    "SetAside",
    "SpooledContent",
    "Store",
    "StoreCounts",
    "StoreInfo",
    "StoreLimits",
    "StreamView",
    "ToolView",
    "Unended",
    "WaitingStream",
    "WantedStore",
    "Wording",
    "acknowledge_losses",
    "agent_version",
    "agent_versions",
    "back_up_store",
    "check_database",
    "create_store",
    "database_to_check",
    "downgrade_store",
    "engine_facts",
    "find_backlog",
    "find_backlog_of_place",
    "find_local_room",
    "find_repairable",
    "find_unended",
    "index_invocations",
    "is_waiting",
    "iter_accepted_values",
    "iter_legs",
    "iter_message_checks",
    "iter_problems",
    "iter_record_checks",
    "iter_rerenderings",
    "kept_folders",
    "look_up_artifact",
    "look_up_newest",
    "look_up_store_id",
    "new_id",
    "now",
    "open_aside",
    "open_store",
    "plan_downgrade",
    "plan_pruning",
    "prune",
    "record_response",
    "record_stream",
    "refuse_read_only",
    "relocate",
    "repair",
    "rerender",
    "set_aside",
    "spool_folder",
    "store_revision",
    "tool_results_message",
    "upgrade_store",
    "user_spool",
    "user_spools",
    "wanted_store",
]
