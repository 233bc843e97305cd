"""Who is refused is told from who comes at the wrong moment, by the words of one server or many."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import make_url

from tooltrail.records import AccessRefusedError, UnavailableError
from tooltrail.store import open_store
from tooltrail.store._engines.refusals import find_refusal

AWAY = "Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?"
REFUSED = 'FATAL:  role "bob" does not exist'
LATER = "FATAL:  the database system is starting up"


def answer(said: str) -> str:
    return f'connection failed: connection to server at "10.0.0.1", port 5432 failed: {said}'


def attempts(*each: tuple[str, str, str]) -> str:
    """As psycopg tells host, address and outcome of several; the port is the usual one."""
    lines = [f"- host: '{one[0]}', port: '5432', hostaddr: '{one[1]}': {one[2]}" for one in each]
    failures = "Multiple connection attempts failed. All failures were:"
    return "\n".join([each[-1][2], failures, *lines])


def is_refused(words: str, hosts: str = "a") -> bool:
    return find_refusal(words, make_url(f"postgresql://bob@/db?host={hosts}")) is not None


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('FATAL:  password authentication failed for user "bob"', True),
        ('FATAL:  database "connect failures" does not exist', True),
        ('FATAL:  role "bob" is not permitted to log in', True),
        ("FATAL:  no pg_hba.conf entry for host, no encryption", True),
        ("ВАЖНО:  роль «bob» не существует", True),
        ("致命错误:  角色 bob 不存在", True),
        ("fe_sendauth: no password supplied", True),
        ("ERROR:  pgbouncer cannot connect to server", False),
        ("FATAL:  no more connections allowed (max_client_conn)", False),
        ("FATAL:  Max client connections reached", False),
        ("FATAL:  out of memory", False),
        ('FATAL:  could not open file "global/1260": Too many open files in system', False),
        ("FATAL:  could not write init file: No space left on device", False),
        (LATER, False),
        ('FATAL:  database "a" is not currently accepting connections', False),
        ("FATAL:  sorry, too many clients already", False),
        ("FATAL:  remaining connection slots are reserved for superusers", False),
        ("FATAL:  canceling authentication due to timeout", False),
        (AWAY, False),
        ("timeout expired", False),
        ("root certificate file: FATAL: is no answer of a server", False),
    ],
)
def test_who_is_refused_is_told_from_who_comes_at_the_wrong_moment(
    said: str, *, expected: bool
) -> None:
    assert is_refused(answer(said)) is expected
    # Libpq speaks another language where a program has set one.
    german = f"Verbindung zum Server auf »10.0.0.1«, Port 5432 fehlgeschlagen: {said}"
    assert is_refused(f"connection failed: {german}") is expected


def test_what_is_lost_later_is_no_refusal() -> None:
    assert not is_refused("the connection is closed")
    assert not is_refused("consuming input failed: server closed the connection unexpectedly")


@pytest.mark.parametrize(
    ("each", "expected"),
    [
        ([("a", "::1", answer(AWAY)), ("a", "127.0.0.1", answer(REFUSED))], True),
        ([("a", "::1", answer(REFUSED)), ("a", "127.0.0.1", answer(AWAY))], True),
        ([("a", "::1", answer(AWAY)), ("a", "127.0.0.1", answer(LATER))], False),
    ],
)
def test_of_the_addresses_of_one_host_one_is_enough(
    each: Sequence[tuple[str, str, str]], *, expected: bool
) -> None:
    refusal = find_refusal(attempts(*each), make_url("postgresql://bob@a/db"))
    # It is quoted, whichever was tried last.
    assert refusal == (answer(REFUSED) if expected else None)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (answer(REFUSED), True),
        (answer(AWAY), False),
        (answer(LATER), False),
        ("connection timeout expired", False),
    ],
)
def test_of_hosts_that_are_named_one_by_one_all_have_to_refuse(other: str, expected: bool) -> None:
    first, second = ("a", "10.0.0.1", answer(REFUSED)), ("b", "10.0.0.2", other)
    assert is_refused(attempts(first, second), "a,b") is expected
    assert is_refused(attempts(second, first), "a,b") is expected
    # One of which nothing is said has a name that leads nowhere just now.
    assert not is_refused(attempts(first, second), "a,b,c")
    assert not is_refused(answer(REFUSED), "a,b")


def test_of_hosts_that_a_file_of_services_names_all_have_to_refuse() -> None:
    url = make_url("postgresql://bob@/db?service=s")
    place = 'connection to server at "%s" (%s), port 5432 failed: %s'
    refused, away = place % ("a", "::1", REFUSED), place % ("b", "10.0.0.2", AWAY)
    assert find_refusal(f"connection failed: {refused}\n{away}", url) is None
    assert find_refusal(f"connection failed: {away}\n{refused}", url) is None
    socket = f'connection to server on socket "/tmp/.s.PGSQL.5432" failed: {AWAY}'
    assert find_refusal(f"connection failed: {refused}\n{socket}", url) is None
    assert find_refusal(f"connection failed: {refused}\n{refused}", url) is not None
    # Both are addresses of one host.
    other = place % ("a", "127.0.0.1", AWAY)
    assert find_refusal(f"connection failed: {refused}\n{other}", url) is not None


def test_addresses_that_are_named_for_one_host_are_servers_of_their_own() -> None:
    named = "db,db&hostaddr=10.0.0.1,10.0.0.2"
    first, second = ("db", "10.0.0.1", answer(REFUSED)), ("db", "10.0.0.2", answer(AWAY))
    assert not is_refused(attempts(first, second), named)
    assert is_refused(attempts(first, ("db", "10.0.0.2", answer(REFUSED))), named)


def test_hosts_may_be_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    url = make_url("postgresql://bob@/db")
    assert find_refusal(answer(REFUSED), url) == answer(REFUSED)
    monkeypatch.setenv("PGHOST", "a,b")
    assert find_refusal(answer(REFUSED), url) is None


def test_of_two_servers_one_that_is_away_may_be_the_right_one(
    postgres_url: str, tmp_path: Path
) -> None:
    url = make_url(postgres_url)
    there = url.normalized_query.get("host", (f"{url.host}:{url.port or 5432}",))[0]
    url = url.set(username="nobody_here", host=None, port=None)

    def named(*hosts: str) -> str:
        several = url.update_query_dict({"host": list(hosts)})
        return several.render_as_string(hide_password=False)

    with pytest.raises(UnavailableError) as caught:
        open_store(named(there, str(tmp_path)))
    assert not isinstance(caught.value, AccessRefusedError)
    with pytest.raises(AccessRefusedError, match='role "nobody_here" does not exist'):
        open_store(named(there, there))
