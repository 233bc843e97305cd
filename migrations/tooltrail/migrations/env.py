"""Where alembic gets its connection: from the program, or from $TOOLTRAIL_DB for a developer.

The program puts an open connection into `config.attributes["connection"]` and decides about the
transaction itself. `target_metadata` is handed in by the tests, since this wing never imports the
tables.
"""

import os

from alembic import context
from sqlalchemy import URL, Connection, create_engine, make_url

from tooltrail.migrations import VERSION_TABLE


def _migrate(connection: Connection) -> None:
    context.configure(
        connection=connection,
        version_table=VERSION_TABLE,
        target_metadata=context.config.attributes.get("target_metadata"),
        # SQLite cannot alter most things in place; a batch rebuilds the table instead.
        render_as_batch=connection.dialect.name == "sqlite",
        compare_server_default=True,
    )
    with context.begin_transaction():
        context.run_migrations()


def _developers_database(named: str) -> URL:
    """Named as the command line takes it: a file, or a URL without a driver."""
    if "://" not in named:
        return URL.create("sqlite", database=named)
    url = make_url(named)
    if url.get_backend_name() == "sqlite":
        return url
    return url.set(drivername="postgresql+psycopg")


def _online() -> None:
    connection = context.config.attributes.get("connection")
    if connection is not None:
        _migrate(connection)
        return
    engine = create_engine(_developers_database(os.environ["TOOLTRAIL_DB"]))
    with engine.begin() as own:
        _migrate(own)
    engine.dispose()


if context.is_offline_mode():
    raise NotImplementedError("the statements of each revision are in versions/*.sql")
_online()
