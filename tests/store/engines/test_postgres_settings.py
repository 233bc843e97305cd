"""Settings of a server or of the user change nothing that is stored."""

import secrets
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import URL, make_url
from tests.support.call_facts import ended, next_id, started
from tests.support.evidence import check_database
from tests.support.store_parts import store_parts

from tooltrail.records import InvalidRecordError, StoreNotFoundError
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.targets import parse_target
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


def with_schema(postgres_url: str, name: str) -> str:
    """The URL of a schema of a database; `name` is an element of a search_path."""
    options = {"options": f"-c search_path={name}"}
    return make_url(postgres_url).update_query_dict(options).render_as_string(hide_password=False)


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
    with pytest.raises(StoreNotFoundError, match=r"no store in .*, schema other; create one"):
        store_revision(with_schema(postgres_url, "other"))


@pytest.mark.parametrize("name", ["My Schema", "Upper", "a.b", 'a"b'])
def test_a_schema_whose_name_needs_quotes_can_be_checked(
    postgres_url: str, tmp_path: Path, name: str
) -> None:
    with psycopg.connect(server_of(postgres_url), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        path = sql.Identifier(name).as_string().replace(" ", r"\ ")
    with create_store(with_schema(postgres_url, path), artifacts=tmp_path / "artifacts") as store:
        assert check_database(store.database) == []


def test_a_schema_that_does_not_exist_is_said_to_be_missing(
    postgres_url: str, tmp_path: Path
) -> None:
    url = with_schema(postgres_url, "nowhere")
    with pytest.raises(InvalidRecordError, match="to create in; create the schema that the search"):
        create_store(url, artifacts=tmp_path / "artifacts")


def test_a_password_that_is_not_utf8_is_not_said_to_be_in_the_database() -> None:
    database = Database(parse_target("postgresql://user:%ff@127.0.0.1:1/db"))
    with pytest.raises(InvalidRecordError, match="the database URL cannot be read"):
        database.read().__enter__()
