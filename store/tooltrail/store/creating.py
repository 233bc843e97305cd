"""Creates a store: the schema, the row of the store, and the mark of its artifact root.

One transaction creates schema and row. The mark is written before the commit, so that every store
has one. An `init` that ends between mark and commit leaves a mark that names this host and
this database. The next `init` uses that mark.
"""

from contextlib import closing
from pathlib import Path
from uuid import UUID

from tooltrail.artifacts import PRIVATE_FILE, make_durable_folders, open_sink
from tooltrail.journal.clock import new_id, now
from tooltrail.migrations import HEAD_REVISION, VERSION_TABLE, statements_of
from tooltrail.records.errors import InvalidRecordError, StoreExistsError, unavailable_if_failing
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.database import Database, ensure_wal
from tooltrail.store.engines.targets import SqliteTarget, Target, is_there
from tooltrail.store.info import FORMAT, read_revision, refuse_other
from tooltrail.store.ingest.durable import make_durable
from tooltrail.store.marks import find_own_mark, mark_root
from tooltrail.store.roots import refuse_spool, remembered_root, resolve_root
from tooltrail.store.search.index import make_index

SCHEMA_LOCK = 0x746F6F6C
"""PostgreSQL advisory lock for changes of the schema ("tool" in ASCII)."""


def create(target: Target, artifacts: str | Path | None, spool: Path) -> UUID:
    """Create a store and return its id. Of several processes that try at once, one succeeds.

    `artifacts` is the artifact root as the caller named it; see `remembered_root`.

    Raises:
        StoreExistsError: there is a store already; it is not changed.
        InvalidRecordError: no root was named and there is no default, or the root belongs to
            another store, or is the spool, or cannot be used; or the SQLite file is a database of
            another application.
        UnavailableError: the database or the root cannot be reached or written.
    """
    with closing(Database(target)) as database:
        if isinstance(target, SqliteTarget):
            _prepare_file(database, target, _new_root(target, artifacts, spool))
        with database.write() as connection:
            if not connection.is_sqlite:
                # Prevents other schema changes until the transaction ends.
                connection.query("SELECT pg_advisory_xact_lock(?)", (SCHEMA_LOCK,))
            _refuse_store(connection)
            _refuse_encoding(connection)
            store_id = _make_schema_and_mark(connection, _new_root(target, artifacts, spool))
        make_durable(database)
    return store_id


def _new_root(target: Target, artifacts: str | Path | None, spool: Path) -> str:
    root = remembered_root(target, artifacts)
    refuse_spool(spool, resolve_root(target, root))
    return root


def _prepare_file(database: Database, target: SqliteTarget, root: str) -> None:
    """Create an empty database that only its owner may read, unless the file exists.

    An artifact root that cannot be used raises before any file is created or changed.
    """
    if is_there(target):
        with database.read() as connection:
            _refuse_store(connection)
    sink = open_sink(resolve_root(target, root), create=True)
    find_own_mark(sink, str(target))  # refuses the root of another store
    with unavailable_if_failing(f"database {target} cannot be made"):
        make_durable_folders(target.path.parent)
        # SQLite would create a file that every user may read. The WAL gets the mode of the file.
        target.path.touch(mode=PRIVATE_FILE)
    ensure_wal(database)


def _refuse_store(connection: Connection) -> None:
    if read_revision(connection) is not None:
        raise StoreExistsError(f"there is a store in {connection.target} already")
    refuse_other(connection, InvalidRecordError)


def _refuse_encoding(connection: Connection) -> None:
    """Raise `InvalidRecordError` for a database on a server that cannot store every text."""
    if not connection.is_sqlite:
        ((encoding,),) = connection.query("SHOW server_encoding")
        if encoding != "UTF8":
            problem = f"has the encoding {encoding}; a store needs a database with UTF8"
            raise InvalidRecordError(f"{connection.target} {problem}")


def _make_schema_and_mark(connection: Connection, root: str) -> UUID:
    target = connection.target
    sink = open_sink(resolve_root(target, root), create=True)
    place = str(target)
    if not connection.is_sqlite:
        place += f" in schema {connection.query('SELECT current_schema()')[0][0]}"
    store_id = find_own_mark(sink, place) or new_id()
    engine = "sqlite" if connection.is_sqlite else "postgresql"
    for statement in statements_of(HEAD_REVISION, engine):
        connection.run(statement)
    connection.run(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    connection.execute(f"INSERT INTO {VERSION_TABLE} VALUES (?)", (HEAD_REVISION,))  # noqa: S608
    row = {
        "key": 1,
        "id": connection.uuid(store_id),
        "format": FORMAT,
        "artifact_root": root,
        "created_at": connection.moment(now()),
    }
    connection.insert("store_info", [row])
    make_index(connection)
    scratch = target.path.parent if isinstance(target, SqliteTarget) else None
    mark_root(sink, store_id, place, scratch)
    return store_id
