from ._clock import new_id, now
from .checking import check_database
from .commitments import RecordCheck, iter_record_checks
from .engine import EngineFacts, engine_facts
from .filters import InvocationFilter
from .info import StoreInfo
from .lookup import ArtifactPlace, look_up_artifact
from .opening import (
    create_store,
    open_store,
    spool_folder,
    store_revision,
    upgrade_store,
    user_spool,
)
from .reader import Reader
from .recorder import Finished, Invocation, Session
from .rerendering import (
    Rerendering,
    RerenderingState,
    Wording,
    iter_rerenderings,
    rerender,
)
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
)

__all__ = [
    "ArtifactPlace",
    "ArtifactView",
    "EngineFacts",
    "Finished",
    "Invocation",
    "InvocationDetail",
    "InvocationFilter",
    "InvocationView",
    "MessageView",
    "Page",
    "Reader",
    "ReceiptView",
    "RecordCheck",
    "Rerendering",
    "RerenderingState",
    "Session",
    "SessionView",
    "Store",
    "StoreCounts",
    "StoreInfo",
    "StreamView",
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
    "rerender",
    "spool_folder",
    "store_revision",
    "upgrade_store",
    "user_spool",
]
