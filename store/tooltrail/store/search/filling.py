"""Fills the index behind the ingester: from the ledger entries that it does not have yet.

    read the rows of some entries → one transaction: add their words, move the cursor

The cursor moves in the transaction that adds the words. So after a kill, every entry is either in
the index or behind its cursor, and a search reads what is behind. Any process may fill the index of
any journal; of two at once, one finds the cursor moved.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from tooltrail.artifacts.paths import artifact_path
from tooltrail.records.errors import DamageError, TooltrailError
from tooltrail.store.bodies import decode_body
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.values import digest_from
from tooltrail.store.locking import wait_until_free
from tooltrail.store.read.rows import Row, Sql, fetch
from tooltrail.store.read.streams import part_of
from tooltrail.store.search import index
from tooltrail.store.search.texts import (
    OpenArchive,
    edges_of,
    leaves_of,
    pieces_of,
    spoken_of,
    summary_of,
    text_of,
)

BATCH_ENTRIES: Final = 2_000
"""Ledger entries that one transaction adds: their texts are in memory."""

LEAST_ENTRIES: Final = 512
"""Entries that wait before the ingester fills the index: many together cost less."""

_NEXT: Final = "SELECT min(n) FROM ledger_entries WHERE journal_key = ? AND n >= ?"

_CALLS: Final = (
    "FROM ledger_entries AS e JOIN invocations AS i ON i.id = e.subject_id"
    " LEFT JOIN surfaces AS s ON s.invocation_key = i.key"
)
_RANGE: Final = " WHERE e.journal_key = ? AND e.n >= ? AND e.n < ? AND e.kind = "
_IS_START: Final = "'call.started' AND i.journal_key = e.journal_key AND i.start_entry = e.n"
_IS_END: Final = "'call.ended' AND i.end_journal_key = e.journal_key AND i.end_entry = e.n"
_IS_RECEIPT: Final = (
    "'call.ended' AND s.receipt_journal_key = e.journal_key AND s.receipt_entry = e.n"
)

_TEXTS: Final = {
    ("arguments",): _IS_START,
    ("receipt", "output", "canonical"): _IS_END,
    ("receipt",): _IS_RECEIPT,
}
"""The columns that came with the entries of a range. The facts are not read."""

_STREAMS: Final = f"""
SELECT i.key, st.digest, st.size, b.size, b.encoding, b.data, a.size
{_CALLS} JOIN streams AS st ON st.invocation_key = i.key
LEFT JOIN bodies AS b ON b.digest = st.digest LEFT JOIN artifacts AS a ON a.digest = st.digest
{_RANGE}{_IS_END} AND st.receipt_offset IS NULL AND st.role <> 'order'"""
_MESSAGES: Final = f"""
SELECT m.key, b.digest, b.size, b.encoding, b.data, b.digest = m.document
FROM ledger_entries AS e JOIN messages AS m ON m.id = e.subject_id
AND m.journal_key = e.journal_key AND m.entry = e.n
JOIN bodies AS b ON b.digest IN (m.text, m.document){_RANGE}'message'"""

_Texts = dict[int, list[str]]


def fill_index(
    database: Database,
    open_archive: OpenArchive,
    *,
    least: int = 1,
    on_progress: Callable[[int, int], object] | None = None,
) -> None:
    """Add the entries that the index does not have.

    Does nothing if the store has no index. `on_progress` is called before the first and after each
    transaction with the number of added entries and of all. Raises `TooltrailError` if the database
    cannot be read, or this program cannot write it now.

    With `least`, a search could do without these entries: adds them only if so many wait in a
    journal, and raises `UnavailableError` at once if the database is locked.
    """
    open_archive = cache(open_archive)
    with database.read() as connection:
        waiting = index.what_is_behind(connection) if index.has_index(connection) else []
    waiting = [behind for behind in waiting if behind.end - behind.first >= least]
    if waiting and least > 1:
        wait_until_free(database, 0)
    done, total = 0, sum(behind.end - behind.first for behind in waiting)
    if on_progress is not None:
        on_progress(done, total)
    for behind in waiting:
        for batch in _batches(database, behind):
            if not _add_batch(database, open_archive, batch):
                break
            done += batch.end - batch.first
            if on_progress is not None:
                on_progress(done, total)


def rebuild_index(
    database: Database,
    open_archive: OpenArchive,
    on_progress: Callable[[int, int], object] | None = None,
) -> None:
    """Make the index again from all records; raises like `fill_index`."""
    with database.write() as connection:
        index.drop_index(connection)
        index.make_index(connection)
    fill_index(database, open_archive, on_progress=on_progress)


def _batches(database: Database, behind: index.Behind) -> Iterator[index.Behind]:
    """Parts of at most `BATCH_ENTRIES` entries. Missing entries belong to the next part."""
    first = behind.first
    while first < behind.end:
        with database.read() as connection:
            following = connection.query(_NEXT, (behind.journal_key, first))[0][0]
        end = min(following + BATCH_ENTRIES, behind.end)
        yield behind._replace(first=first, end=end)
        first = end


def _add_batch(database: Database, open_archive: OpenArchive, batch: index.Behind) -> bool:
    """Add some entries; False if another process fills the index, or switched it off."""
    with database.read() as connection:
        texts = _read_texts(connection, open_archive, batch)
    with database.write() as connection:
        if is_next := index.has_index(connection) and index.move_cursor(connection, batch):
            index.add_words(connection, batch, texts)
    return is_next


def _read_texts(connection: Connection, open_archive: OpenArchive, entries: index.Behind) -> _Texts:
    """The texts of some entries, by the numbers of their owners."""
    texts: _Texts = defaultdict(list)
    for names, condition in _TEXTS.items():
        columns = ", ".join(f"s.{name}" for name in names)
        select = f"SELECT i.key, s.is_exact, {columns} {_CALLS}{_RANGE}{condition}"
        for key, is_exact, *values in fetch(connection, Sql(select, entries)):
            if is_exact in (1, True) and all(isinstance(one, str | None) for one in values):
                for name, value in zip(names, values, strict=True):
                    texts[key * 2] += _texts_of(name, value or "")
            else:
                texts[key * 2] += _exact_texts(connection, key)
    for key, *stream in fetch(connection, Sql(_STREAMS, entries)):
        texts[key * 2] += _stream_texts(open_archive, stream)
    for key, *body, is_document in fetch(connection, Sql(_MESSAGES, entries)):
        for text in map(text_of, _body(*body)):
            found = (one for _, one in spoken_of(text)) if is_document else (text,)
            texts[key * 2 + 1] += found
    return texts


def _texts_of(name: str, text: str) -> list[str]:
    """The texts in a column. JSON without escapes has the same words as the texts in it."""
    if name == "canonical":
        return [one for _, one in summary_of(text)]
    if name == "receipt" or "\\" not in text:
        return [text]
    return [one for _, one in leaves_of(name, text)]


def _exact_texts(connection: Connection, key: int) -> list[str]:
    """The texts of a call whose columns do not hold them exactly."""
    from tooltrail.store.read.details import details_of  # noqa: PLC0415  few calls need it

    (detail,) = details_of(connection, Sql("invocations.key = ?", (key,)))
    if detail.damage is not None:
        return [index.UNREAD]
    return [piece.text for piece in pieces_of(detail, lambda _stream: [])]


def _stream_texts(open_archive: OpenArchive, row: Row) -> list[str]:
    digest, size, body_size, encoding, data, artifact_size = row
    if body_size is not None:
        found = _body(digest, body_size, encoding, data)
        return [text_of(part) for one in found for _, part in edges_of(part_of(one), len(one))]
    if artifact_size is None:
        return [index.UNREAD]
    try:
        reader = open_archive().reader(artifact_path(digest_from(digest)), size=size)
        return [text_of(part) for _, part in edges_of(reader.read_bytes, size)]
    except (TooltrailError, TypeError, ValueError):
        return [index.UNREAD]


def _body(digest: Any, size: Any, encoding: Any, data: Any) -> list[bytes]:
    """The bytes of a body, if it is neither erased nor damaged."""
    try:
        return [decode_body(digest_from(digest), size, encoding, data)]
    except (DamageError, TypeError, ValueError):
        return []
