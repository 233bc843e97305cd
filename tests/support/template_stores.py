"""Fresh stores for tests, copied from a finished database instead of made by migrations.

The template of an engine is a database at the head revision without a row in `store_info`. A copy
gets a row of its own, so that each store has its own id, artifact root and mark.
"""

import secrets
import tempfile
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import psycopg
from psycopg import sql
from sqlalchemy import URL, insert

from tooltrail.artifacts import PRIVATE_FILE, make_private_folders, open_sink
from tooltrail.journal.clock import new_id
from tooltrail.records import FamilyRegistry, Policy
from tooltrail.store import Durability, OnUnavailable, Store, StoreLimits, open_store
from tooltrail.store._engines.database import open_database
from tooltrail.store._engines.targets import SqliteTarget, Target, parse_target
from tooltrail.store._outbox.known_stores import remember
from tooltrail.store._roots.marks import mark_root
from tooltrail.store._roots.remembered import remembered_root, resolve_root
from tooltrail.store._schema.revision import migrate_within
from tooltrail.store.info import FORMAT
from tooltrail.store.tables import StoreInfoRow


def make_store(
    database: str | Path,
    *,
    artifacts: str | None = None,
    spool: Path | None = None,
    policy: Policy | None = None,
    families: FamilyRegistry | None = None,
    limits: StoreLimits | None = None,
    durability: Durability = "full",
    on_unavailable: OnUnavailable = "outbox",
) -> Store:
    """Make a store from the template and open it. The arguments are those of `create_store`.

    An existing file is an error. A database of a server is dropped and replaced.
    """
    target = parse_target(database)
    root = remembered_root(target, artifacts)
    if isinstance(target, SqliteTarget):
        _copy_file(target.path)
    else:
        _copy_database(target.url)
    _add_own_row(target, root)
    store = open_store(
        database,
        spool=spool,
        policy=policy,
        families=families,
        limits=limits,
        durability=durability,
        on_unavailable=on_unavailable,
    )
    if on_unavailable != "raise":
        remember(store.spool, target, store.info)
    return store


def drop_templates(server: URL) -> None:
    """Drop the template databases that this process made on a server."""
    admin = _admin_url(server)
    if name := _TEMPLATES.pop(admin, None):
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))


_TEMPLATES: dict[str, str] = {}
"""The name of the template database per server."""


def _copy_file(path: Path) -> None:
    make_private_folders(path.parent)
    path.touch(mode=PRIVATE_FILE, exist_ok=False)
    path.write_bytes(_template_file())


@cache
def _template_file() -> bytes:
    with tempfile.TemporaryDirectory(prefix="tooltrail-") as folder:
        path = Path(folder, "template.db")
        path.touch()
        _migrate(parse_target(path))
        return path.read_bytes()


def _copy_database(url: URL) -> None:
    admin = _admin_url(url)
    if admin not in _TEMPLATES:
        _TEMPLATES[admin] = _make_template_database(admin, url)
    copy, template = sql.Identifier(url.database or ""), sql.Identifier(_TEMPLATES[admin])
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(copy))
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY").format(copy, template)
        )


def _make_template_database(admin: str, url: URL) -> str:
    name = f"tooltrail_template_{secrets.token_hex(6)}"
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    _migrate(parse_target(url.set(database=name).render_as_string(hide_password=False)))
    return name


def _admin_url(url: URL) -> str:
    # Without options of the session, so that a server has one URL.
    query = {name: value for name, value in url.query.items() if name in ("host", "port")}
    admin = url.set(drivername="postgresql", database="postgres", query=query)
    return admin.render_as_string(hide_password=False)


def _migrate(target: Target) -> None:
    database = open_database(target, foreign_keys=False, turns=False)
    try:
        with database.write() as connection:
            migrate_within(connection, target)
        database.ensure_wal()
    finally:
        database.close()


def _add_own_row(target: Target, root: str) -> None:
    store_id = new_id()
    scratch = target.path.parent if isinstance(target, SqliteTarget) else None
    mark_root(open_sink(resolve_root(target, root), create=True), store_id, target.place, scratch)
    database = open_database(target, foreign_keys=False, turns=False)
    try:
        with database.write() as connection:
            connection.execute(
                insert(StoreInfoRow).values(
                    key=1,
                    id=store_id,
                    format=FORMAT,
                    artifact_root=root,
                    created_at=datetime.now(UTC),
                )
            )
    finally:
        database.close()
