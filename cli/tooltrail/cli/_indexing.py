"""The work of `tooltrail db index`, and the index in `status`."""

from tooltrail.cli._long_commands import progress_bar, share_bar
from tooltrail.cli._output import counted, size_of
from tooltrail.store.search.filling import rebuild_index
from tooltrail.store.search.index import drop_index, read_state
from tooltrail.store.store import Store


def index_record(store: Store) -> dict[str, int]:
    """The state of the index as a record."""
    with store.database.read() as connection:
        return read_state(connection)


def index_line(record: dict[str, int]) -> str:
    """The state of the index in a few words."""
    if not record["is_on"]:
        return "off; `tooltrail db index --rebuild` makes one"
    waiting = record["waiting_count"]
    newer = f"; {counted(waiting, 'newer fact')} searched without it" if waiting else ""
    return f"{size_of(record['size'])} for {counted(record['entry_count'], 'fact')}{newer}"


def rebuild_with_bar(store: Store) -> None:
    """Make the index again, with a progress bar."""
    with share_bar("indexing", may_wait=True) as update:
        rebuild_index(store.database, lambda: store.archive, update)


def switch_off(store: Store) -> None:
    """Remove the index. Ingestion no longer fills it."""
    with progress_bar("removing the index", may_wait=True), store.database.write() as connection:
        drop_index(connection)
