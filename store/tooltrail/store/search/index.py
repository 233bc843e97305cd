"""The index of words: which texts have a word. Derived data, made from the record at any time.

An owner is a call or a message. Its number is `key * 2`, plus 1 for a message. The index holds
words and numbers alone, no text.

    search_words      for each batch of ledger entries and first byte of a word: a block,
                      compressed with a checksum. Each line has the words of one owner. The block
                      for the byte 0 has the numbers of the owners and of the other blocks
    search_cursors    for each journal, the ledger entry up to which the index is filled

A GIN index over tsvectors is as large as the texts, an index of FTS5 is an eighth of them, this is
a sixteenth. Both tables are absent while the index is switched off. They are not evidence.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import zstandard

from tooltrail.records.errors import DamageError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.values import NO_NUMBER
from tooltrail.store.read.rows import sum_of
from tooltrail.store.search.words import Phrase, words_of

UNREAD: Final = "\u2400"
"""A text of owners with a part that could not be read. They match every query."""

_UNREAD_WORD: Final = UNREAD.encode()
_OWNERS: Final = 0
"""The first byte of no word: its block has the owners of a batch."""

_MOST_BYTES: Final = 1 << 30
"""Most bytes of a block, far more than the words of a batch."""

_FEW_ENOUGH: Final = 20
"""Owners among which a search looks for further words."""

_TABLES: Final = ("search_words", "search_cursors")

_MADE: Final = (
    """CREATE TABLE search_words (initial INTEGER, journal_key BIGINT, n BIGINT,
    block {} NOT NULL, PRIMARY KEY (initial, journal_key, n))""",
    "CREATE TABLE search_cursors (journal_key BIGINT PRIMARY KEY, n BIGINT NOT NULL)",
)

_SIZE_IN_FILE: Final = "SELECT coalesce(sum(length(block)), 0) FROM search_words"
_SIZE_ON_SERVER: Final = "SELECT pg_total_relation_size('search_words')"

_DAMAGED: Final = "the index of words is damaged; `tooltrail db index --rebuild` makes it again"

_BLOCKS: Final = "SELECT journal_key, n, block FROM search_words WHERE initial = ?"

_LEDGER_JOURNALS: Final = """
(WITH RECURSIVE found(key) AS (SELECT min(journal_key) FROM ledger_entries UNION ALL
SELECT (SELECT min(journal_key) FROM ledger_entries WHERE journal_key > found.key) FROM found
WHERE found.key IS NOT NULL) SELECT key FROM found WHERE key IS NOT NULL)"""
"""Selects the keys of the journals with ledger entries, even if the row of a journal is missing."""

_FILLED: Final = f"""
SELECT key, first, until FROM (SELECT ledger.key, coalesce(search_cursors.n, 0) AS first,
(SELECT max(n) + 1 FROM ledger_entries WHERE journal_key = ledger.key
AND n < coalesce(journals.next_index, {NO_NUMBER})) AS until FROM {_LEDGER_JOURNALS} AS ledger
LEFT JOIN journals ON journals.key = ledger.key
LEFT JOIN search_cursors ON search_cursors.journal_key = ledger.key) AS filled"""
"""How far the index of each journal is filled, and the end of its ledger. An entry
behind `next_index` is damage and left out: with it, newer entries would never be indexed."""

_BEHIND: Final = f"{_FILLED} WHERE until > first ORDER BY key"

_CURSORS: Final = "SELECT journal_key, n FROM search_cursors"

_STARTED: Final = """
SELECT i.key FROM invocations AS i JOIN search_cursors AS c
ON c.journal_key = i.journal_key AND i.start_entry < c.n"""


_Places = dict[tuple[int, int], Sequence[int]]
"""Numbers of lines, by batch."""


class Behind(NamedTuple):
    """Ledger entries of a journal that the index does not have: from `first`, before `end`."""

    journal_key: int
    first: int
    end: int


def has_index(connection: Connection) -> bool:
    """Whether the index is on."""
    return all(map(connection.has_table, _TABLES))


def make_index(connection: Connection) -> None:
    """Make an empty index in a write transaction."""
    for statement in _MADE:
        connection.run(statement.format("BLOB" if connection.is_sqlite else "BYTEA"))


def drop_index(connection: Connection) -> None:
    """Remove the index with all its words, in a write transaction."""
    for table in _TABLES:
        connection.run(f"DROP TABLE IF EXISTS {table}")


def read_state(connection: Connection) -> dict[str, int]:
    """The index as `tooltrail db index --json` prints it.

    `size` is in bytes. `entry_count` ledger entries are in the index, `waiting_count` are not.
    """
    if not has_index(connection):
        return {"is_on": False, "size": 0, "entry_count": 0, "waiting_count": 0}
    sized = _SIZE_IN_FILE if connection.is_sqlite else _SIZE_ON_SERVER
    filled = connection.query(f"SELECT {sum_of('n')} FROM search_cursors")
    return {
        "is_on": True,
        "size": int(connection.query(sized)[0][0]),
        "entry_count": int(filled[0][0]),
        "waiting_count": sum(one.end - one.first for one in what_is_behind(connection)),
    }


def what_is_behind(connection: Connection) -> list[Behind]:
    """The ledger entries that the index does not have, by journal."""
    return [Behind(*row) for row in connection.query(_BEHIND)]


def move_cursor(connection: Connection, batch: Behind) -> bool:
    """Move the cursor over a batch in a write transaction; False if another process moved it."""
    connection.insert_once("search_cursors", [{"journal_key": batch.journal_key, "n": 0}])
    sql = "UPDATE search_cursors SET n = ? WHERE journal_key = ? AND n = ?"
    return connection.execute(sql, (batch.end, batch.journal_key, batch.first)) == 1


def add_words(connection: Connection, batch: Behind, owners: Mapping[int, Sequence[str]]) -> None:
    """Add texts by the number of their owner, as one batch."""
    lines = defaultdict[int, list[bytes]](lambda: [b""] * len(owners))
    for place, texts in enumerate(owners.values()):
        words = words_of("\n".join(texts))
        if UNREAD in texts:
            words.add(_UNREAD_WORD)
        by_initial = defaultdict[int, list[bytes]](list)
        for word in words:
            by_initial[word[0]].append(word)
        for initial, some in by_initial.items():
            lines[initial][place] = b" %b " % b" ".join(sorted(some))
    lines[_OWNERS] = [b"%d" % number for number in (*owners, len(lines) + 1)]
    compress = zstandard.ZstdCompressor(write_checksum=True).compress
    key = {"journal_key": batch.journal_key, "n": batch.first}
    blocks = {one: compress(b"\n".join(some)) for one, some in sorted(lines.items())}
    made = [{"initial": one, **key, "block": block} for one, block in blocks.items()]
    connection.insert("search_words", made)


def owners_with(connection: Connection, phrases: Sequence[Phrase]) -> set[int] | None:
    """The owners whose texts have all words of each phrase, and a few that may have them.

    None if most owners have each of the words, so that any owner may have them. Raises
    `DamageError` if a block of the index is damaged.
    """
    found: set[int] | None = None
    # Long words are mostly rare. A search reads a few owners faster than the block of a word.
    for word in sorted(
        {word for one in phrases for word in one.words}, key=lambda one: len(one[0]), reverse=True
    ):
        places = _places_of(connection, *word)
        if _are_most(connection, places):
            continue
        some = _owners_at(connection, places)
        found = some if found is None else found & some
        if len(found) <= _FEW_ENOUGH:
            break
    if found is None:
        return None
    return found | _owners_at(connection, _places_of(connection, _UNREAD_WORD))


def check_index(connection: Connection) -> Iterator[str]:
    """A sentence if the index is damaged: a block is damaged or lost, or a search would miss calls.

    A word that was removed from a block, with a new checksum, is not noticed.
    """
    if not has_index(connection):
        return
    with suppress(DamageError, TypeError, ValueError):
        if has_all_blocks(connection) and _has_all_calls(connection):
            return
    yield _DAMAGED


def has_all_blocks(connection: Connection) -> bool:
    """Whether each batch has all its blocks. Raises `DamageError` if a block is damaged."""
    missing: Counter[tuple[int, int]] = Counter()
    for initial in range(256):
        for *batch, block in connection.query(_BLOCKS, (initial,)):
            numbers = _unpacked(block).split()
            missing[batch[0], batch[1]] += int(numbers[-1]) - 1 if initial == _OWNERS else -1
    return not any(missing.values())


def _has_all_calls(connection: Connection) -> bool:
    """Whether the index has all calls before its cursors.

    Each cursor must be within the ledger, and after every batch of its journal.
    """
    ends = {key: end for key, _, end in connection.query(_FILLED)}
    cursors: dict[int, int] = dict(connection.query(_CURSORS))
    owners: set[int] = set()
    for journal, n, block in connection.query(_BLOCKS, (_OWNERS,)):
        owners.update(int(owner) for owner in _unpacked(block).split()[:-1])
        if n >= cursors.get(journal, 0):
            return False
    are_in_ledger = all(n <= ends.get(journal, 0) for journal, n in cursors.items())
    return are_in_ledger and all(key * 2 in owners for (key,) in connection.query(_STARTED))


def _places_of(connection: Connection, word: bytes, goes_on: bool = False) -> _Places:
    """The lines of the owners with a word, or with words that begin so.

    All lines of a batch if more than three quarters of them have a complete word: a search reads
    the texts of further owners faster than this function looks at each line.
    """
    wanted, found = b" %b%b" % (word, b"" if goes_on else b" "), _Places()
    for journal, n, block in connection.query(_BLOCKS, (word[0],)):
        words = _unpacked(block)
        if not (count := words.count(wanted)):
            continue
        total = words.count(b"\n") + 1
        if 4 * count > 3 * total and not goes_on:  # else a line may count more than once
            found[journal, n] = range(total)
        else:
            lines = enumerate(words.split(b"\n"))
            found[journal, n] = [place for place, line in lines if wanted in line]
    return found


def _are_most(connection: Connection, places: _Places) -> bool:
    """Whether more than three quarters of all owners are at some places."""
    count = sum(map(len, places.values()))
    if count <= _FEW_ENOUGH:
        return False
    total = 0
    for *_, block in connection.query(_BLOCKS, (_OWNERS,)):
        total += _unpacked(block).count(b"\n")
        if 3 * total > 4 * count:
            return False
    return True


def _owners_at(connection: Connection, places: _Places) -> set[int]:
    """The owners at some places."""
    blocks = connection.query(_BLOCKS, (_OWNERS,)) if places else []
    owners = {(journal, n): block for journal, n, block in blocks}
    found: set[int] = set()
    for batch, some in places.items():
        numbers = _unpacked(owners.get(batch)).split()
        found.update(map(int, map(numbers.__getitem__, some)))
    return found


def _unpacked(block: Any) -> bytes:
    with suppress(zstandard.ZstdError, TypeError):
        # A damaged header may announce more bytes than there is memory for.
        if zstandard.frame_content_size(block) <= _MOST_BYTES:
            return zstandard.ZstdDecompressor().decompress(block)
    raise DamageError(_DAMAGED, path="search_words")
