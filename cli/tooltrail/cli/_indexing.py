"""The work of `tooltrail db index`, and the index in `status` and `gc`."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from tooltrail.cli._long_commands import progress_bar
from tooltrail.cli._output import counted, say, size_of
from tooltrail.store.search.filling import fill_index, forget_erased, rebuild_index
from tooltrail.store.search.index import drop_index, has_index, read_state
from tooltrail.store.store import Store


def index_record(store: Store) -> dict[str, Any]:
    """The state of the index as a record."""
    with store.database.read() as connection:
        return read_state(connection)._asdict()


def index_line(record: dict[str, Any]) -> str:
    """The state of the index in a few words."""
    if not record["is_on"]:
        return "off; `tooltrail db index --rebuild` makes one"
    of = record["entry_count"] + record["waiting_count"]
    return f"{size_of(record['size'])}, {record['entry_count']:,} of {counted(of, 'fact')}"


def rebuild_with_bar(store: Store) -> None:
    """Make the index again, with a progress bar."""
    with _bar(store) as update:
        rebuild_index(store.database, lambda: store.archive, update)


def fill_with_bar(store: Store) -> None:
    """Fill the index; make it if the store has none."""
    with store.database.read() as connection:
        is_on = has_index(connection)
    if not is_on:
        rebuild_with_bar(store)
        return
    with _bar(store) as update:
        fill_index(store.database, lambda: store.archive, on_progress=update)


def switch_off(store: Store) -> None:
    """Remove the index. Ingestion no longer fills it."""
    with store.database.write() as connection:
        drop_index(connection)


def forget_with_bar(store: Store) -> None:
    """Remove the words of erased texts, and say so if there were any."""
    with _bar(store) as update:
        is_done = forget_erased(store.database, lambda: store.archive, update)
    if is_done:
        say("the words of erased texts were removed from the index")


@contextmanager
def _bar(store: Store) -> Generator[Callable[[int], None]]:
    """A progress bar over the ledger entries of the store."""
    with store.database.read() as connection:
        total = connection.query("SELECT coalesce(sum(next_index), 0) FROM journals")[0][0]
    done = 0
    with progress_bar("indexing", int(total)) as update:

        def more(count: int) -> None:
            nonlocal done
            done += count
            update(done, 0)

        yield more
