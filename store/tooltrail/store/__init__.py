"""Where records are kept: recording, reading, creating and upgrading a store."""

from tooltrail.store._clock import new_id, now
from tooltrail.store.checking import check_database
from tooltrail.store.engine import EngineFacts, engine_facts
from tooltrail.store.filters import InvocationFilter
from tooltrail.store.info import StoreInfo
from tooltrail.store.opening import (
    create_store,
    open_store,
    spool_folder,
    store_revision,
    upgrade_store,
    user_spool,
)
from tooltrail.store.reader import Reader
from tooltrail.store.recorder import Finished, Invocation, Session
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
    "Session",
    "SessionView",
    "Store",
    "StoreCounts",
    "StoreInfo",
    "StreamView",
    "check_database",
    "create_store",
    "engine_facts",
    "new_id",
    "now",
    "open_store",
    "spool_folder",
    "store_revision",
    "upgrade_store",
    "user_spool",
]
