"""The index of words: which texts have a word. Derived data, made from the record at any time.

A document is the texts of one fact: the arguments of a call, what came of it, a receipt that was
found later, or a message. Its number is `owner * 4 + part`, and an owner is `key * 2`, plus 1 for a
message. The index holds words and numbers alone, no text.

    search_words      SQLite: a contentless FTS5 table. PostgreSQL: for each batch of documents and
                      first letter, the words with the places of their documents in the batch, in
                      lines that are compressed together; for no letter, the documents. A GIN index
                      over tsvectors is as large as the texts, this is a fourteenth of them.
    search_cursors    for each journal, the ledger entry up to which the index is filled

Both tables are absent while the index is switched off. They are not evidence.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import zstandard

from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.rows import Sql, joined
from tooltrail.store.search.words import Phrase, ascii_words, indexed, words_of

STARTED, ENDED, RECEIPT, MESSAGE = range(4)
"""The parts of a call, and the one part of a message."""

UNREAD: Final = "\u2400unread"
"""A word of documents with a part that could not be read. They match every query."""

_TABLES: Final = ("search_words", "search_cursors")

_MADE_IN_FILE: Final = (
    """CREATE VIRTUAL TABLE search_words USING fts5
    (words, content='', columnsize=0, detail=none, tokenize='ascii')""",
    "CREATE TABLE search_cursors (journal_key INTEGER PRIMARY KEY, n INTEGER NOT NULL)",
)
_MADE_ON_SERVER: Final = (
    """CREATE TABLE search_words (initial TEXT, journal_key BIGINT, n BIGINT,
    block BYTEA NOT NULL, PRIMARY KEY (initial, journal_key, n))""",
    "CREATE TABLE search_cursors (journal_key BIGINT PRIMARY KEY, n BIGINT NOT NULL)",
)

_SIZE_IN_FILE: Final = "SELECT coalesce(sum(length(block)), 0) FROM search_words_data"
_SIZE_ON_SERVER: Final = "SELECT pg_total_relation_size('search_words')"

_TOMBSTONES: Final = 0
"""The key of the row of `search_cursors` with the newest tombstone that the index respects."""

_NEWEST_TOMBSTONE: Final = "SELECT coalesce(max(key), 0) FROM tombstones"

_BEHIND: Final = """
SELECT journals.key, coalesce(search_cursors.n, 0), journals.next_index FROM journals
LEFT JOIN search_cursors ON search_cursors.journal_key = journals.key
WHERE journals.next_index > coalesce(search_cursors.n, 0) ORDER BY journals.key"""


class Behind(NamedTuple):
    """Ledger entries of a journal that the index does not have: from `first`, before `end`."""

    journal_key: int
    first: int
    end: int


class IndexState(NamedTuple):
    """The index of a store.

    Attributes:
        is_on: whether the store has an index.
        size: bytes of the index.
        entry_count: ledger entries up to which the index is filled, over all journals.
        waiting_count: ledger entries that are not in the index.
    """

    is_on: bool
    size: int = 0
    entry_count: int = 0
    waiting_count: int = 0


def has_index(connection: Connection) -> bool:
    """Whether the index is on."""
    return connection.has_table(_TABLES[-1])


def has_library(connection: Connection) -> bool:
    """Whether the database can have an index: SQLite may be built without FTS5."""
    if not connection.is_sqlite:
        return True
    return connection.query("SELECT sqlite_compileoption_used('ENABLE_FTS5')") == [(1,)]


def make_index(connection: Connection) -> None:
    """Make an empty index in a write transaction, unless the library cannot have one."""
    if has_library(connection):
        for statement in _MADE_IN_FILE if connection.is_sqlite else _MADE_ON_SERVER:
            connection.run(statement)
        newest = connection.query(_NEWEST_TOMBSTONE)[0][0]
        connection.insert("search_cursors", [{"journal_key": _TOMBSTONES, "n": newest}])


def drop_index(connection: Connection) -> None:
    """Remove the index with all its words, in a write transaction."""
    for table in _TABLES:
        connection.run(f"DROP TABLE IF EXISTS {table}")


def read_state(connection: Connection) -> IndexState:
    """The size and the coverage of the index."""
    if not has_index(connection):
        return IndexState(is_on=False)
    sized = _SIZE_IN_FILE if connection.is_sqlite else _SIZE_ON_SERVER
    filled = connection.query(
        "SELECT coalesce(sum(n), 0) FROM search_cursors WHERE journal_key > 0"
    )
    waiting = sum(one.end - one.first for one in what_is_behind(connection))
    return IndexState(True, int(connection.query(sized)[0][0]), int(filled[0][0]), waiting)


def has_erased_words(connection: Connection) -> bool:
    """Whether texts were erased since the index was made: it still has their words."""
    if not has_index(connection):
        return False
    known = "SELECT n FROM search_cursors WHERE journal_key = ?"
    return connection.query(_NEWEST_TOMBSTONE) > connection.query(known, (_TOMBSTONES,))


def what_is_behind(connection: Connection) -> list[Behind]:
    """The ledger entries that the index does not have, by journal."""
    return [Behind(*row) for row in connection.query(_BEHIND)]


def move_cursor(connection: Connection, behind: Behind, end: int) -> bool:
    """Move the cursor of a journal in a write transaction; False if another process moved it."""
    connection.insert_once("search_cursors", [{"journal_key": behind.journal_key, "n": 0}])
    sql = "UPDATE search_cursors SET n = ? WHERE journal_key = ? AND n = ?"
    return connection.execute(sql, (end, behind.journal_key, behind.first)) == 1


def add_documents(
    connection: Connection, behind: Behind, documents: Mapping[int, Sequence[str]]
) -> None:
    """Add documents, texts by number, as the batch that begins at `behind.first`."""
    if connection.is_sqlite:
        rows = [{"rowid": doc, "words": _for_file(texts)} for doc, texts in documents.items()]
        connection.insert("search_words", rows)
        return
    words: defaultdict[str, list[str]] = defaultdict(list)
    for place, texts in enumerate(documents.values()):
        for word in words_of("\n".join(texts)) | {UNREAD} & set(texts):
            words[word].append(str(place))
    lines: defaultdict[str, list[str]] = defaultdict(list, {"": list(map(str, documents))})
    for word, places in sorted(words.items()):
        lines[word[0]].append(f"{word} {' '.join(places)}")
    compress = zstandard.ZstdCompressor().compress
    batch = {"journal_key": behind.journal_key, "n": behind.first}
    blocks = {one: compress("\n".join(some).encode()) for one, some in lines.items()}
    made = [{"initial": one, **batch, "block": block} for one, block in blocks.items()]
    connection.insert("search_words", made)


def select_owners(connection: Connection, phrases: Sequence[Phrase]) -> Sql:
    """Select as `owner` the owners whose documents have all words of each phrase."""
    if connection.is_sqlite:
        one = "SELECT rowid >> 2 AS owner FROM search_words WHERE search_words MATCH ?"
        return joined(" INTERSECT ", [Sql(one, (_match(phrase),)) for phrase in phrases])
    found = [{doc >> 2 for doc in _documents_with(connection, phrase)} for phrase in phrases]
    owners = sorted(set[int].intersection(*found))
    return Sql("SELECT unnest(CAST(? AS bigint[])) AS owner", (owners,))


def _documents_with(connection: Connection, phrase: Phrase) -> set[int]:
    """The documents with all words of a phrase, from the blocks of a server."""
    found: set[int] | None = None
    for word, goes_on in phrase.words:
        some = _documents_of(connection, word, r"\S*" if goes_on else "")
        found = some if found is None else found & some
    return (found or set()) | _documents_of(connection, UNREAD, "")


def _documents_of(connection: Connection, word: str, rest: str) -> set[int]:
    line = re.compile(rf"^{re.escape(word)}{rest} (.*)$", re.MULTILINE)
    decompress = zstandard.ZstdDecompressor().decompress
    query = "SELECT initial, journal_key, n, block FROM search_words WHERE initial IN ('', ?)"
    places: dict[tuple[int, int], set[int]] = {}
    documents: dict[tuple[int, int], bytes] = {}
    for initial, *batch, block in connection.query(query, (word[0],)):
        if initial == "":
            documents[batch[0], batch[1]] = block
            continue
        lines = line.findall(decompress(block).decode())
        if lines:
            places[batch[0], batch[1]] = {int(one) for some in lines for one in some.split()}
    found: set[int] = set()
    for key, some in places.items():
        numbers = decompress(documents[key]).split()
        found |= {int(numbers[place]) for place in some}
    return found


def _for_file(texts: Sequence[str]) -> str:
    """What FTS5 splits into words: its tokenizer agrees with `words_of` on ASCII alone."""
    text = indexed("\n".join(texts))
    plain = None if UNREAD in texts else ascii_words(text)
    return " ".join(words_of(text) | {UNREAD} & set(texts)) if plain is None else plain


def _match(phrase: Phrase) -> str:
    every = " AND ".join(f'"{word}"{"*" if goes_on else ""}' for word, goes_on in phrase.words)
    return f'({every}) OR "{UNREAD}"'
