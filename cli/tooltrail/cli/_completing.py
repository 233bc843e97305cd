"""The names of a store that begin with a text, for a shell. Facts that wait are not ingested."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Final

import click
from click.shell_completion import CompletionItem

from tooltrail.artifacts.paths import path_beginning
from tooltrail.cli._default_database import default_database
from tooltrail.cli._output import printable, size_of
from tooltrail.importers import FORMATS
from tooltrail.records.ids import short_id
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.targets import parse_target
from tooltrail.store.opening import open_existing
from tooltrail.store.read.lists import list_artifacts
from tooltrail.store.read.values import SOURCES, distinct_values, recent_names

_MOST: Final = 100
_MOST_SHOWN: Final = 80
_MOST_SECONDS: Final = 2

_RECORDING: Final = ("exec", "mcp-proxy")
"""Commands that refuse `@last`, since they record into a session."""

_DIGITS: Final = re.compile("[0-9a-f]{1,64}")
_PLAIN: Final = re.compile(r"[\w@][\w@%+=:,./#-]*")
"""A word that no shell expands. Other names are not completed: a shell would run `$(…)` in one."""


def complete(kind: str, beginning: str, context: click.Context) -> list[CompletionItem]:
    """The names of a kind that begin with a text, the newest first; none after an error."""
    if kind == "files":
        return [CompletionItem(beginning, type="file")]
    # The shell waits: a database that does not answer ends the program.
    signal.signal(signal.SIGALRM, lambda _number, _frame: os._exit(0))
    signal.alarm(_MOST_SECONDS)
    with suppress(Exception):
        return [
            CompletionItem(name, help=printable(about)[:_MOST_SHOWN] or None)
            for name, about in _names(kind, beginning, context)
            if name.startswith(beginning) and _PLAIN.fullmatch(name)
        ][:_MOST]
    return []


def _names(kind: str, beginning: str, context: click.Context) -> Iterator[tuple[str, str]]:
    """The names of a kind, each with a description."""
    if kind == "formats":
        yield from ((name, "") for name in FORMATS)
        return
    # The database of the command, or of an option before the command.
    given = context.params.get("db") or context.find_root().params.get("db")
    target = parse_target(given or os.environ.get("TOOLTRAIL_DB") or default_database())
    with closing(open_existing(target)) as database, database.read() as connection:
        if kind in SOURCES:
            yield from ((name, "") for name in distinct_values(connection, kind))
            return
        # An artifact is named by its invocation, too.
        table = "invocations" if kind == "artifacts" else kind
        if context.command.name not in _RECORDING:
            yield "@last", f"the newest of all {table}"
        yield from _recent(connection, table, beginning)
        if kind == "artifacts" and beginning:
            yield from _artifacts(connection, beginning)


def _artifacts(connection: Connection, beginning: str) -> Iterator[tuple[str, str]]:
    """Artifacts by their digits, digest and path."""
    digits = beginning.removeprefix("sha256:")
    path = path_beginning(digits) if _DIGITS.fullmatch(digits) else beginning
    for view in list_artifacts(connection, beginning=path, limit=_MOST):
        for name in (view.digest.removeprefix("sha256:"), view.digest, view.path):
            yield name, size_of(view.size)


def _recent(connection: Connection, table: str, beginning: str) -> Iterator[tuple[str, str]]:
    """The names and ids of the newest invocations or sessions; full ids only if asked for."""
    if table == "invocations" and beginning.startswith("@"):
        yield "@running", "the newest that has not ended"
        yield from ((f"@last:{tool}", "") for tool in distinct_values(connection, "tools"))
    for id_, label, title in recent_names(connection, table):
        about = " ".join(f"{label} {title}".split())
        if table == "sessions" and label:
            yield label, title
        yield short_id(id_), about
        if beginning:
            yield str(id_), about
