"""The work of `tooltrail search`: makes the query, and prints the hits."""

import posixpath
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from itertools import islice
from pathlib import Path

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._long_commands import interruptible, progress_bar
from tooltrail.cli._output import (
    Listing,
    attributes,
    counted,
    named_store,
    printable,
    say,
    terminal_columns,
    write,
)
from tooltrail.cli._pager import page_output
from tooltrail.cli._tables import RED, colour_of_outcome, coloured
from tooltrail.cli._times import shown_in_list
from tooltrail.records.errors import TooltrailError, UnavailableError
from tooltrail.records.ids import short_id
from tooltrail.store.filters import OUTCOMES, InvocationFilter
from tooltrail.store.read.reader import Reader
from tooltrail.store.search.filling import fill_index
from tooltrail.store.search.index import has_index
from tooltrail.store.search.queries import MOST_CHARS, LineQuery, PathQuery, Place, Query, WordQuery
from tooltrail.store.search.searching import Hit, Search
from tooltrail.store.search.texts import WHOLE_BYTES
from tooltrail.store.search.words import phrases_of
from tooltrail.store.store import Store

_RANKED = 1_000
"""Hits that `--rank` orders."""

_WEIGHTS = {"arguments": 3, "error": 3, "summary": 3, "text": 2}
"""What a place of a text counts for `--rank`; 1 for any other."""

_MANY = 64
"""Facts that wait before a search fills the index: it reads fewer itself."""

_MOST_REASONS = 5
_MOST_PLACES = 3
_LINES_AROUND = 5
_INDENT = " " * 4


def make_query(
    texts: Sequence[str],
    *,
    regex: str | None,
    literal: str | None,
    path: str | None,
    ignore_case: bool,
) -> Query:
    """The query of the arguments."""
    if bool(texts) + sum(one is not None for one in (regex, literal, path)) != 1:
        raise click.UsageError(
            "say what to find: either TEXT, or one of --regex, --literal, --path"
        )
    pattern = literal if regex is None else regex
    if pattern == "":
        raise click.UsageError("an empty pattern matches every line")
    if pattern is not None:
        return LineQuery(pattern, literal=literal is not None, ignore_case=ignore_case)
    if ignore_case:
        raise click.UsageError("-i belongs to --regex and --literal; TEXT always ignores the case")
    if path == "":
        raise click.UsageError("--path is empty; name a file or a folder")
    if path is not None and posixpath.normpath(path) in (".", ".."):
        path = str(Path(path).absolute())
    return PathQuery(path) if path is not None else WordQuery(phrases_of(texts))


def print_hits(
    location: Location,
    query: Query,
    where: InvocationFilter,
    output: Listing,
    *,
    count: int,
    cursor: str | None,
    oldest_first: bool,
    rank: bool,
    context: int,
) -> int:
    """Search, print the hits, and return the exit code."""
    if rank and (cursor or oldest_first or not isinstance(query, WordQuery)):
        raise click.UsageError("--rank needs TEXT, and excludes --cursor and --reverse")
    with interruptible(), location.open() as store:
        reader = store.reader  # creates a store that has only a journal
        if query.phrases is not None and not _has_index(store):
            if isinstance(query, WordQuery):
                raise UnavailableError(
                    "the store has no index of words; make one with `tooltrail db index --rebuild`,"
                    " or search without it: --literal TEXT"
                )
            query.phrases = None
        is_slow = bool(count) and query.phrases is None
        bar = progress_bar("searching", _total(reader, where)) if is_slow else nullcontext()
        with bar as update:
            search = Search(
                reader,
                lambda: store.archive,
                query,
                where,
                oldest_first=oldest_first,
                cursor=cursor,
                context=context,
                on_progress=update,
            )
            hits: Iterable[Hit] = search.hits(count) if count else search.hits()
            if rank:
                hits = sorted(islice(hits, _RANKED), key=_relevance, reverse=True)
            if count:  # without a count, hits are printed when they are found, and not kept
                hits = list(islice(hits, count))
        _print(hits, output)
        if count and isinstance(hits, list) and len(hits) == count:
            more = "" if rank else f", --cursor {hits[-1].cursor} for the next"
            say(f"first {count:,} listed; -n 0 for all{more}")
        return _report(store, search)


def _total(reader: Reader, where: InvocationFilter) -> int:
    """The number of calls and messages to search; fewer messages may fit the filter."""
    return reader.count_invocations(where) + reader.count_messages()


def _has_index(store: Store) -> bool:
    """Whether the words can be found; fills the index first if many facts wait."""
    if store.lag is None:
        with suppress(TooltrailError):  # a search reads what the index does not have
            fill_index(store.database, lambda: store.archive, least=_MANY)
    with store.database.read() as connection:
        return has_index(connection)


def _relevance(hit: Hit) -> int:
    """The weight of a hit: arguments, summaries and errors weigh more than output."""
    return sum(_WEIGHTS.get(place.name.partition(".")[0], 1) for place in hit.places)


def _print(hits: Iterable[Hit], output: Listing) -> None:
    def of_first(name: str) -> Callable[[Hit], object]:
        return lambda hit: getattr(hit.places[0], name)

    named = named_store()
    members: dict[str, Callable[[Hit], object]] = {
        **attributes("kind", "id", "session_id", "seq", "at", "name", "outcome", "title"),
        **{name: of_first(name) for name in ("line", "offset", "text", "before", "after")},
        "artifact_path": of_first("path"),
        "place": lambda hit: hit.places[0].name,
        "places": lambda hit: [place.name for place in hit.places],
        "command": lambda hit: shlex.join(command_of(hit, hit.places[0], named)),
    }
    if output.print_records(hits, members):
        return
    for number, hit in enumerate(hits):
        if number == 0:
            page_output()
        write(("\n" if number else "") + "".join(_block(hit, named)))


def _block(hit: Hit, named: Sequence[str]) -> Iterator[str]:
    """The lines of a hit: the call, its places, and the commands that open them."""
    # The columns of the terminal; without one, what a place keeps of a line.
    columns = terminal_columns() if sys.stdout.isatty() else MOST_CHARS + len(_INDENT)
    about = [short_id(hit.id), shown_in_list(hit.at), printable(hit.name)]
    if hit.outcome:
        about.append(printable(hit.outcome))
    room = max(columns - len("  ".join(about)) - 2, 0)
    if hit.outcome:
        about[-1] = coloured(about[-1], colour_of_outcome(hit.outcome))
    yield "  ".join([*about, printable(hit.title)[:room]]).rstrip() + "\n"
    # The receipt mostly repeats the output.
    places = {place.text.strip(): place for place in reversed(hit.places)}
    for place in [one for one in hit.places if places[one.text.strip()] is one][:_MOST_PLACES]:
        where = f"  {printable(place.name)}, line {place.line:,}, byte {place.offset:,}:"
        command = printable(shlex.join(command_of(hit, place, named)))
        gap = "  " if len(where) + 2 + len(command) <= columns else f"\n{_INDENT}"
        yield f"{where}{gap}{command}\n"
        room = columns - len(_INDENT)
        before = [printable(one[:room].removesuffix("\r")) for one in place.before]
        after = [printable(one[:room].removesuffix("\r")) for one in place.after]
        yield from (f"{_INDENT}{line}\n" for line in (*before, _marked(place, room), *after))


def command_of(hit: Hit, place: Place, named: Sequence[str]) -> list[str]:
    """The command that shows a place."""
    if hit.kind == "message":
        return ["tooltrail", "transcript", *named, str(hit.session_id)]
    if place.surface == "complete":
        lines = f"{max(1, place.line - _LINES_AROUND)}:{place.line + _LINES_AROUND}"
        part = ("--stream", place.name, "--lines", lines)
        return ["tooltrail", "cat", *named, short_id(hit.id), *part]
    if place.surface == "json":  # no surface shows it alone
        return ["tooltrail", "show", *named, short_id(hit.id), "--json"]
    surface = ("--surface", place.surface) if place.surface else ()
    return ["tooltrail", "show", *named, short_id(hit.id), *surface]


def _marked(place: Place, room: int) -> str:
    """The line of a place with the match in colour, cut around the match."""
    text, start = place.text, place.start
    if len(text) > room:
        first = max(0, min(start - room // 3, len(text) - room))
        text, start = text[first : first + room], start - first
    end = start + place.length
    match = coloured(printable(text[start:end]), RED)
    before = text[:start].replace("\t", " ")
    after = text[end:].removesuffix("\r").replace("\t", " ")
    return printable(before) + match + printable(after)


def _report(store: Store, search: Search) -> int:
    """Say what was not searched, and return the exit code."""
    with store.database.read() as connection:
        longer = connection.query("SELECT 1 FROM artifacts WHERE size > ? LIMIT 1", (WHOLE_BYTES,))
    if longer and isinstance(search.query, WordQuery):
        whole = WHOLE_BYTES // 1024
        say(f"only the ends of streams above {whole} KiB were searched; --literal searches all")
    running = _running(store, search)
    if running:
        say(
            f"the output of {counted(running, 'running call')} was not searched;"
            " `tooltrail grep TEXT @running` searches the newest"
        )
    for reason in search.unread[:_MOST_REASONS]:
        say(f"tooltrail: not searched: {reason}")
    if len(search.unread) > _MOST_REASONS:
        say(f"tooltrail: {len(search.unread):,} texts not searched in total")
    if search.unread or running:
        return ExitCode.INCOMPLETE
    if not search.hit_count:
        say("nothing found")
        return ExitCode.NOT_FOUND
    return ExitCode.OK


def _running(store: Store, search: Search) -> int:
    """The number of calls whose output a search should read, and which have not ended."""
    outcomes = search.where.outcomes or OUTCOMES
    if isinstance(search.query, PathQuery) or "running" not in outcomes:
        return 0
    return store.reader.count_invocations(search.where.replaced(outcomes=("running",)))
