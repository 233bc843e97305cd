"""What a schema should be, in the words of the very server that is asked what it is.

PostgreSQL keeps expressions as trees and words them anew, not each version alike. So what differs
from the words that are kept is made once more, on temporary tables in a transaction that is never
committed, and told by the same server. Nothing of the store is touched.
"""

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from tooltrail.store._engines.database import Database
from tooltrail.store._engines.failures import translated_errors
from tooltrail.store._schema.shape import Shape, read_shape

_TEMPORARY_FIRST = """
SELECT set_config('search_path', concat_ws(', ', 'pg_temp', current_setting('search_path')), true)
"""


def in_words_of_server(database: Database, wanted: Shape, found: Shape) -> Shape:
    """What is wanted, with each definition that is not as it was found worded by the server.

    Where it makes nothing for this user, as a standby that only reads, the words stay as they are.

    Args:
        database: on a server.
        wanted: in the words of any version.
        found: in the words of this server.

    Raises:
        UnavailableError: the server cannot be reached.
    """
    doubtful: Shape = {}
    for table, parts in wanted.items():
        there = found.get(table, {})
        for part, definition in parts.items():
            if _is_worded_anew(part, definition) and there.get(part, definition) != definition:
                doubtful.setdefault(table, {})[part] = definition
    if not doubtful:
        return wanted
    with translated_errors(database.target):
        words = _worded(database, doubtful, wanted)
    return {
        table: parts | {part: words.get(table, {}).get(part, parts[part]) for part in asked}
        for table, parts in wanted.items()
        for asked in [doubtful.get(table, {})]
    }


def _is_worded_anew(part: str, definition: str) -> bool:
    kind = part.partition(" ")[0]
    return kind in ("index", "trigger") or (kind == "constraint" and definition.startswith("CHECK"))


def _worded(database: Database, doubtful: Shape, wanted: Shape) -> Shape:
    with database.engine.connect() as new:
        # No statement is a template, whatever stands in it.
        connection = new.execution_options(no_parameters=True)
        connection.execute(text(_TEMPORARY_FIRST))
        for table, parts in doubtful.items():
            columns = _columns_of(wanted[table])
            # Without it the parts would be made on the table of the store.
            if not _is_made(connection, f'CREATE TEMPORARY TABLE "{table}" ({columns})'):
                continue
            for part, definition in parts.items():
                _is_made(connection, _statement(table, part, definition))
        return read_shape(connection, frozenset(doubtful), temporary=True)


def _columns_of(parts: dict[str, str]) -> str:
    return ", ".join(
        f'"{part.removeprefix("column ")}" {definition.partition(" default ")[0]}'
        for part, definition in parts.items()
        if part.startswith("column ")
    )


def _statement(table: str, part: str, definition: str) -> str:
    kind, _, name = part.partition(" ")
    if kind != "constraint":
        return definition
    return f'ALTER TABLE pg_temp."{table}" ADD CONSTRAINT "{name}" {definition}'


def _is_made(connection: Connection, statement: str) -> bool:
    """Whether the server takes a statement; it may miss a function that was dropped, for one."""
    try:
        with connection.begin_nested():
            connection.exec_driver_sql(statement)
    except DBAPIError as error:
        if error.connection_invalidated:
            raise
        return False
    return True
