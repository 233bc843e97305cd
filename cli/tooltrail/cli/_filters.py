"""The filter options of lists of invocations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import click

from tooltrail.cli._location import Location
from tooltrail.cli._options import Decorated, stacked
from tooltrail.cli._output import printable, say
from tooltrail.cli._times import MOMENT, SIGNAL, SIZE, Parsed
from tooltrail.store.filters import COLUMN_OF, FAILED, OUTCOMES, STATES, InvocationFilter

if TYPE_CHECKING:
    from tooltrail.store import Reader
    from tooltrail.store.expressions import Expression

_KNOWN: Final = ("agents", "error_kinds", "families", "tools")
"""Filters whose values are compared with those of the store."""

_MOST_SHOWN: Final = 80


def _exit_code(text: str) -> tuple[int, bool]:
    """The number of `N`, or of `!=N` for every other exit status, and whether it is `!=`."""
    number = int(text.removeprefix("!="))
    if not 0 <= number <= 255:
        raise ValueError(text)
    return number, text.startswith("!=")


def _condition(text: str) -> Expression:
    """The condition in a text; the message of a `ValueError` shows the place of the mistake."""
    from tooltrail.cli._where import parse_where  # noqa: PLC0415  imports a parser library
    from tooltrail.store.expressions import check_size  # noqa: PLC0415  not for --help

    expression = parse_where(text)
    check_size(expression)
    return expression


def _many(
    flag: str, name: str, help_text: str, kind: Any = str, metavar: str = "NAME"
) -> Callable[[Any], Any]:
    return click.option(flag, name, multiple=True, type=kind, help=help_text, metavar=metavar)


def _chosen(flag: str, name: str, what: str, choices: Sequence[str]) -> Callable[[Any], Any]:
    return _many(flag, name, f"{what}: {', '.join(choices)}.", click.Choice(choices))


def filter_options(function: Decorated) -> Decorated:
    """Pass all filter options to the command as one argument `where`, with names resolved."""

    @wraps(function)
    def with_filter(*args: Any, location: Location, **kwargs: Any) -> Any:
        wanted = {
            name: kwargs.pop(name) for name in InvocationFilter.member_types if name in kwargs
        }
        conditions, codes = kwargs.pop("conditions"), kwargs.pop("exit_codes")
        for name, same in _SHORT.items():
            wanted["outcomes"] += same if kwargs.pop(name) else ()
        wanted["exit_statuses"] = tuple(code for code, is_other in codes if not is_other)
        wanted["not_exit_statuses"] = tuple(code for code, is_other in codes if is_other)
        if conditions or any(wanted[name] for name in ("sessions", "invocations", *_KNOWN)):
            with location.open() as store:
                reader = store.reader
                _say_unknown(reader, wanted, conditions)
                wanted["sessions"] = tuple(reader.session(one).id for one in wanted["sessions"])
                wanted["invocations"] = tuple(map(reader.invocation_id, wanted["invocations"]))
                wanted["expression"] = reader.resolved(conditions) if conditions else None
        return function(*args, location=location, where=InvocationFilter(**wanted), **kwargs)

    return stacked(*_OPTIONS)(with_filter)


def _say_unknown(
    reader: Reader, wanted: Mapping[str, Sequence[str]], expressions: Sequence[Expression]
) -> None:
    """Say on stderr which values of a filter no record has, and which values are the nearest."""
    from tooltrail.store.expressions import required_values  # noqa: PLC0415  not for --help
    from tooltrail.store.read.values import has_value, near_values  # noqa: PLC0415  the same

    required = [required_values(one) for one in expressions]
    with reader.database.read() as connection:
        for kind in _KNOWN:
            column = COLUMN_OF[kind]
            named = [one.get(column, ()) for one in required]
            for value in dict.fromkeys(map(str, chain(wanted[kind], *named))):
                if not has_value(connection, kind, value):
                    near = near_values(connection, kind, value)
                    noun = column.replace("_", " ")
                    say(f"tooltrail: no {noun} `{printable(value[:_MOST_SHOWN])}`{near}")


def say_missing(reader: Reader, where: InvocationFilter) -> None:
    """Say on stderr which values of a condition no call has; for a list that is empty."""
    from tooltrail.store.expressions import PRESENT, comparisons_of, operators_of  # noqa: PLC0415

    found = () if where.expression is None else comparisons_of(where.expression)
    may_miss = (one for one in found if PRESENT in operators_of(one.name))
    for one in dict.fromkeys(one.replaced(operator=PRESENT, value=None) for one in may_miss):
        if not reader.invocations(InvocationFilter(expression=one), limit=1).items:
            path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in one.path)
            say(f"tooltrail: no call has a value of `{one.name}{path}`")


_SHORT: Final = {"failed": FAILED, "ok": ("ok",), "timed_out": ("timeout",)}
"""The outcomes that an option is short for."""

_OPTIONS = (
    _many("--session", "sessions", "Invocations of this session: an id, a name, or @last."),
    _many("--invocation", "invocations", "This invocation only."),
    _many("--tool", "tools", "Invocations of this tool."),
    _many("--family", "families", "Invocations of this family of tools."),
    click.option(
        "--failed",
        is_flag=True,
        help="Calls with any outcome but ok, running and unfinished.",
    ),
    click.option("--ok", is_flag=True, help="Calls that succeeded."),
    _chosen("--outcome", "outcomes", "Invocations with this outcome", OUTCOMES),
    click.option("--timed-out", is_flag=True, help="Calls that reached their time limit."),
    _many(
        "--exit-code",
        "exit_codes",
        "N: commands with this exit status. !=N: commands with any other one.",
        Parsed("exit code", _exit_code, "N or !=N with N from 0 to 255"),
        "N|!=N",
    ),
    _many(
        "--signal", "signals", "Commands that this signal ended, such as SIGKILL.", SIGNAL, "SIGNAL"
    ),
    _chosen("--state", "states", "Invocations in this state", STATES),
    _many("--error-kind", "error_kinds", "Invocations that failed with this kind of error."),
    _many("--agent", "agents", "Invocations of this agent."),
    click.option(
        "--since", type=MOMENT, help="Started at this time or later: 2h, 3d, yesterday, a date."
    ),
    click.option("--until", type=MOMENT, help="Started before this time."),
    click.option(
        "--min-size",
        metavar="SIZE",
        type=SIZE,
        help="Output of at least this many bytes, such as 64K.",
    ),
    _many(
        "--where",
        "conditions",
        "Invocations for which a condition is true, such as 'duration > 30s'.",
        Parsed("condition", _condition),
        "CONDITION",
    ),
)
