"""Settings of a server or of the user change nothing that is stored."""

import secrets
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import URL, make_url
from tests.support.call_facts import ended, next_id, started
from tests.support.store_parts import store_parts

from tooltrail.records import InvalidRecordError, StoreNotFoundError
from tooltrail.store.opening import create_store, store_revision

SETTINGS = {
    "standard_conforming_strings": "off",
    "datestyle": "German",
    "client_encoding": "LATIN1",
    "bytea_output": "escape",
    "timezone": "Asia/Tokyo",
}
TEXT = "漢字 \\x00 ü".encode()


def server_of(url: str) -> str:
    """The URL of a database for psycopg."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


@pytest.mark.parametrize("place", ["database", "url"])
@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_alters_no_record(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, name: str
) -> None:
    value = SETTINGS[name]
    if place == "url":
        options = {"options": f"-c {name}={value}"}
        postgres_url = (
            make_url(postgres_url).update_query_dict(options).render_as_string(hide_password=False)
        )
    else:
        monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
        with psycopg.connect(server_of(postgres_url), autocommit=True) as connection:
            database = sql.Identifier(make_url(postgres_url).database or "")
            change = sql.SQL("ALTER DATABASE {} SET {} = {}")
            connection.execute(change.format(database, sql.Identifier(name), sql.Literal(value)))
    with store_parts(postgres_url, tmp_path) as parts:
        session, call = next_id(), next_id()
        parts.ingest(started(session, call), ended(session, call, TEXT))
        assert not parts.rejections()
        assert parts.verify(receipts=True) == []
        detail = parts.reader.invocation(call)
        assert detail.receipt is not None
        assert TEXT.decode() in detail.receipt.text
        assert detail.summary.started_at.utcoffset() is not None


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_store_every_text_is_refused(
    postgres_server: URL, tmp_path: Path, encoding: str
) -> None:
    name = f"tooltrail_{secrets.token_hex(6)}"
    admin = server_of(postgres_server.set(database="postgres").render_as_string(False))
    create = sql.SQL(
        "CREATE DATABASE {} ENCODING {} LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    )
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(create.format(sql.Identifier(name), sql.Literal(encoding)))
        url = postgres_server.set(drivername="postgresql", database=name)
        try:
            sentence = f"has the encoding {encoding}; a store needs a database with UTF8"
            with pytest.raises(InvalidRecordError, match=sentence):
                create_store(url.render_as_string(hide_password=False), artifacts=tmp_path / "root")
        finally:
            drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
            connection.execute(drop.format(sql.Identifier(name)))


def test_a_table_of_another_application_is_in_the_way(postgres_url: str, tmp_path: Path) -> None:
    with psycopg.connect(server_of(postgres_url), autocommit=True) as connection:
        connection.execute("CREATE TABLE messages (id int)")
    said = 'the schema has other tables: relation "messages" already exists'
    with pytest.raises(InvalidRecordError, match=said):
        create_store(postgres_url, artifacts=tmp_path / "artifacts")


def test_a_store_in_another_schema_is_not_found(postgres_url: str, tmp_path: Path) -> None:
    create_store(postgres_url, artifacts=tmp_path / "artifacts").close()
    with psycopg.connect(server_of(postgres_url), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA other")
    options = {"options": "-c search_path=other"}
    url = make_url(postgres_url).update_query_dict(options).render_as_string(hide_password=False)
    with pytest.raises(StoreNotFoundError, match=r"no store in .*, schema other; create one"):
        store_revision(url)
