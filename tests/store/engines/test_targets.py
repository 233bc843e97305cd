"""How a database is named, and that a password never shows."""

from pathlib import Path

import pytest
from tests.support.processes import run_python

from tooltrail.records import InvalidRecordError
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.targets import PostgresTarget, SqliteTarget, is_there, parse_target
from tooltrail.store.opening import create_store
from tooltrail.store.roots import default_spool

SECRET = "a-very-secret-word"


@pytest.mark.parametrize(
    ("named", "path"),
    [
        ("/data/trail.db", "/data/trail.db"),
        (Path("/data/trail.db"), "/data/trail.db"),
        ("sqlite:////data/trail.db", "/data/trail.db"),
        ("sqlite:///trail.db", "HERE/trail.db"),
        ("trail.db", "HERE/trail.db"),
        ("~/trail.db", "HERE/home/trail.db"),
        ("a:b", "HERE/a:b"),
    ],
)
def test_a_file_is_named_by_path_or_url(
    named: str | Path, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = path.replace("HERE", str(tmp_path))

    target = parse_target(named)

    assert target == SqliteTarget(Path(path))
    assert str(target) == path


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg2"])
def test_a_server_is_reached_through_psycopg_3(scheme: str) -> None:
    target = parse_target(f"{scheme}://user@host:5433/db?sslmode=require")
    assert isinstance(target, PostgresTarget)
    assert target.url == "postgresql://user@host:5433/db?sslmode=require"
    assert str(target) == "postgresql://host:5433/db"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://{SECRET}@host/db",
        f"postgresql://user:{SECRET}@host/db",
        f"postgresql://host/db?sslpassword={SECRET}",
        f"postgresql://host/db?user={SECRET}&passfile={SECRET}",
        f"postgresql://host/db?options=-cmy.token%3D{SECRET}",
        f"postgresql://host/db?application_name={SECRET}",
    ],
)
def test_what_is_printed_of_a_server_says_where_it_is_and_nothing_else(url: str) -> None:
    target = parse_target(url)
    assert str(target) == "postgresql://host:5432/db"
    assert SECRET not in repr(target)


@pytest.mark.parametrize(
    ("shown", "spellings"),
    [
        (
            "postgresql://host:5432/team",
            [
                "host/team",
                "host:5432/team",
                "/team?host=host",
                "/team?port=5432&host=host",
                "host?dbname=team",
                "a@host:/team?connect_timeout=3",
                "other:1/team?host=host&port=5432",
            ],
        ),
        ("postgresql://host:5433/team", ["host:5433/team", "host/team?port=5433"]),
        ("postgresql:///team", ["/team", "a@/team", "?dbname=team", ":5432/team"]),
        (
            "postgresql:///team?host=%2Frun%2Fpg",
            ["/team?host=/run/pg", "%2Frun%2Fpg/team", "/team?port=5432&host=%2Frun%2Fpg"],
        ),
        ("postgresql://:5433/team?host=%2Frun%2Fpg", ["/team?host=/run/pg&port=5433"]),
        ("postgresql://[::1]:5432/team", ["[::1]/team", "[::1]:5432/team", "/team?host=::1"]),
        ("postgresql://host:5432", ["host", "HOST:5432/", "/?host=Host"]),
        ("postgresql://host:5432/a%20b", ["host/a%20b", "host/%61%20b", "host?dbname=a+b"]),
        ("postgresql://a:1,b:2/team", ["a:1,b:2/team"]),
    ],
)
def test_all_spellings_of_a_server_are_one(shown: str, spellings: list[str]) -> None:
    targets = [parse_target(f"postgresql://{one}") for one in spellings]
    assert {str(one) for one in targets} == {shown}
    assert len({default_spool(one) for one in targets}) == 1


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql:/user:{SECRET}@host/db",
        f"postgres:user:{SECRET}@host/db",
        f"PostgreSQL+psycopg:/user:{SECRET}@host/db",
    ],
)
def test_a_url_that_lacks_a_slash_is_not_taken_for_a_file_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidRecordError) as refused:
        parse_target(url)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://user:{SECRET}@host/db",
        f"postgresql://host/db?user=user&password={SECRET}",
        f"postgresql://host/db?password=other&password={SECRET}",
    ],
)
def test_a_password_is_used_and_never_shown(url: str) -> None:
    target = parse_target(url)
    assert isinstance(target, PostgresTarget)
    assert SECRET in target.url
    database = Database(target)
    for shown in (target, database):
        assert SECRET not in f"{shown} {shown!r}"
    database.close()


@pytest.mark.parametrize(
    "named",
    [
        "mysql://host/db",
        "sqlite://",
        "sqlite:///:memory:",
        "://",
        "postgresql://user:word@host:port/db",
        f"postgresql://user@host:{SECRET}/db",
        f"postgresql://user:word@{SECRET}@host/db",
        f"postgresql://user:1/{SECRET}@host/db",
        f"postgresql://user:1?x={SECRET}@host/db",
        f"postgresql://user:1#{SECRET}@host/db",
        "postgresql://host/db#other",
        "trail\0.db",
        Path("trail\0.db"),
        "postgresql://host/d\0b",
    ],
)
def test_what_is_no_database_is_refused_without_a_secret(named: str | Path) -> None:
    with pytest.raises(InvalidRecordError) as caught:
        parse_target(named)
    assert SECRET not in f"{caught.value} {caught.value!r} {caught.value.__cause__!r}"


@pytest.mark.parametrize(
    "rest", ["u:p@h/db", "h/db?application_name=a@b", "/db?user=a@b", "[::1]/db"]
)
def test_an_at_sign_in_an_option_is_no_password(rest: str) -> None:
    assert isinstance(parse_target(f"postgresql://{rest}"), PostgresTarget)


@pytest.mark.parametrize("tail", ["?mode=ro", "?x=1/trail.db", f"?password={SECRET}", "?"])
def test_options_behind_an_sqlite_file_are_refused(tail: str) -> None:
    with pytest.raises(InvalidRecordError, match="%3F") as refused:
        parse_target(f"sqlite:////data/q{tail}")
    assert SECRET not in str(refused.value)
    target = parse_target("sqlite:////data/q%3Fx=1/trail.db")
    assert target == SqliteTarget(path=Path("/data/q?x=1/trail.db"))


def test_without_psycopg_it_is_said_what_to_install() -> None:
    said, _ = run_python(
        """
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("psycopg", "psycopg2", "psycopg_binary"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in [n for n in sys.modules if n.startswith("psycopg")]:
    del sys.modules[name]
sys.meta_path.insert(0, Missing())
from tooltrail.records import UnavailableError
from tooltrail.store import open_store
try:
    open_store("postgresql://host/db").reader
except UnavailableError as error:
    print(error)
"""
    )
    assert "pip install 'tooltrail[postgres]'" in said


def test_opening_a_store_does_not_import_alembic_or_psycopg() -> None:
    said, _ = run_python(
        """
for name in [n for n in sys.modules if n.partition(".")[0] in ("alembic", "psycopg")]:
    del sys.modules[name]
from tooltrail.store import open_store
from tooltrail.records import StoreNotFoundError
try:
    open_store("/nowhere/trail.db", create=False)
except StoreNotFoundError:
    print(sorted(n for n in sys.modules if n in ("alembic", "psycopg")))
"""
    )
    assert said.strip() == "[]"


@pytest.mark.parametrize("name", ["~no-such-user/trail.db", "sqlite:///~no-such-user/trail.db"])
def test_the_home_of_an_unknown_user_is_refused(name: str) -> None:
    with pytest.raises(InvalidRecordError, match="the home folder in '~no-such-user"):
        parse_target(name)


def test_the_longest_path_that_sqlite_opens_is_accepted_and_no_longer_one(tmp_path: Path) -> None:
    folder = tmp_path
    while len(str(folder)) < 350:
        folder /= "f" * 50
    folder.mkdir(parents=True)
    longest = folder / ("d" * (503 - len(str(folder))))
    create_store(longest).close()
    with pytest.raises(InvalidRecordError, match=r"has 505$"):
        is_there(parse_target(longest.with_name(f"{longest.name}d")))
