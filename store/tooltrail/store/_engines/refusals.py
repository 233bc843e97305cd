"""Whether servers that did not let somebody in will not do so later, either: told from words.

Libpq has no SQLSTATE for a connection that was not made, and a server asked for English heeds that
only once it has let somebody in. So an answer of a server is known by its shape, which libpq gives
it in all languages: a severity, a colon and two spaces. What it means is known from English words.
In others one that is being started, or is full, is taken for one that refuses: that is told, where
the other would be kept quiet.
"""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from sqlalchemy import URL

_ANSWER = re.compile(r": [^\s:][^:\n]*:  (.*)")

_NO_PASSWORD = "fe_sendauth"  # noqa: S105  no secret
"""What libpq says itself, in all languages, where a server wants a password and there is none."""

_ATTEMPT = re.compile(r"^- host: (.*?), port: (.*?), hostaddr: (.*?): ", re.MULTILINE)
"""So psycopg begins what became of each address that it tried, when it tried several."""

_SERVER = re.compile(
    r'(?:connection failed: )?connection to server (?:at|on socket) "(.*?)"'
    r"(?: \([^)]*\))?(?:, port (\d+))?(?= failed: )"
)
"""So libpq begins, in English, what became of each server that a file of services names."""

_LATER = (
    "the database system is ",
    "not currently accepting connections",
    "too many clients",
    "too many connections",
    "no more connections",
    "client connections",
    "connection slots are reserved",
    "terminating connection",
    "canceling authentication",
    "out of memory",
    "Too many open files",
    "No space left on device",
    "cannot connect",  # so says what stands between, as the next do: pgbouncer
    "connect failed",
    "server login",
    "_timeout",
)
"""Parts of what a server says that lets nobody in now: it is being started or stopped, is full, or
its machine is."""


def find_refusal(words: str, url: URL) -> str | None:
    """What a server says that refuses, if all do that a URL names one by one; None otherwise.

    One that was not reached, or lets nobody in just now, may be the one that is meant: while it is
    away nobody is refused. So may one whose name leads nowhere, which psycopg passes over without a
    word. Of the addresses that one name leads to a refusal by any is that of the server, since at
    the others mostly nobody listens.

    Args:
        words: of the driver.
        url: that it was given.
    """
    hosts, addresses = _listed(url, "host"), _listed(url, "hostaddr")
    by_server: dict[Sequence[str], list[str]] = {}
    for host, port, address, said in _attempts(words):
        server = (host, port, address) if any(addresses) else (host, port)
        by_server.setdefault(server, []).extend(filter(_is_refusal, said.splitlines()))
    if len(by_server) < max(len(set(hosts)), len(set(addresses))) or not all(by_server.values()):
        return None
    return next(iter(by_server.values()))[0].strip()


def _listed(url: URL, name: str) -> Sequence[str]:
    """What a URL, or else the environment, names one by one."""
    named = ",".join(url.normalized_query.get(name, ()))
    if name == "host":
        named = named or url.host or ""
    named = named or os.environ.get(f"PG{name.upper()}", "")
    return named.split(",")


def _attempts(words: str) -> Iterator[tuple[str, str, str, str]]:
    """Host, port and address of each attempt, and what came of it."""
    found = list(_ATTEMPT.finditer(words))
    if found:
        for one, behind in zip_longest(found, found[1:]):
            yield one[1], one[2], one[3], words[one.end() : behind and behind.start()]
        return
    # All addresses of one host are one server's.
    found = list(_SERVER.finditer(words))
    if not found:
        yield "", "", "", words
    for one, behind in zip_longest(found, found[1:]):
        yield one[1], one[2] or "", "", words[one.start() : behind and behind.start()]


def _is_refusal(line: str) -> bool:
    answer = _ANSWER.search(line)
    if answer is None:
        return _NO_PASSWORD in line
    return not any(known in answer[1] for known in _LATER)
