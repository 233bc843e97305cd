"""Options that several commands share, each one defined once."""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tooltrail.cli._exec_options import OPTIONS
from tooltrail.cli._location import Location, default_database
from tooltrail.cli._output import Listing

Decorated = Callable[..., Any]


class NamedOption(click.Option):
    """An option that names something; an empty text names nothing, as if it had not been given."""

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        """The value and where it is from: the command line, else the environment."""
        value, source = super().consume_value(ctx, opts)
        return super().consume_value(ctx, {}) if value == "" else (value, source)


def named_option(flag: str, **more: Any) -> Callable[[Decorated], Decorated]:
    """An option that `exec` has too, with the same variable and help text."""
    (option,) = (one for one in OPTIONS if one.flag == flag)
    return click.option(
        flag,
        cls=NamedOption,
        envvar=option.variable,
        metavar=option.metavar,
        help=option.help,
        **more,
    )


def gathered(name: str, kind: Callable[..., Any]) -> Callable[[Decorated], Decorated]:
    """Hand several options on as one argument, which `kind` makes of those that it takes."""
    options = list(signature(kind).parameters)

    def decorate(function: Decorated) -> Decorated:
        @wraps(function)
        def with_one(*args: Any, **kwargs: Any) -> Any:
            values = {option: kwargs.pop(option) for option in options}
            return function(*args, **{name: kind(**values)}, **kwargs)

        return with_one

    return decorate


def stacked(*decorators: Callable[[Any], Any]) -> Callable[[Decorated], Decorated]:
    """One decorator that applies several, so that `--help` lists them in this order."""

    def decorate(function: Decorated) -> Decorated:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def _location(db: str | None, artifacts: str | None, spool: Path | None) -> Location:
    return Location(db or default_database(), artifacts, spool)


store_options = stacked(
    named_option("--db"),
    named_option("--artifacts"),
    named_option("--spool", type=click.Path(path_type=Path, file_okay=False)),
    gathered("location", _location),
)
"""`--db`, `--artifacts` and `--spool`, handed on as one `location`."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
"""`--json`: one array, each element with its schema_version."""

output_options = stacked(
    click.option("--json", "style", flag_value="json", help="Print one JSON array."),
    click.option("--ndjson", "style", flag_value="ndjson", help="Print one JSON object per line."),
    click.option("--csv", "style", flag_value="csv", help="Print comma-separated values."),
    click.option("--fields", metavar="A,B", help="Print only these fields, in this order."),
    gathered("output", Listing),
)
"""The ways in which a list can be printed, handed on as one `output`."""

time_option = click.option("--utc", is_flag=True, help="Show times in UTC, not local time.")
"""`--utc`: stored times are UTC and shown local."""

count_option = click.option(
    "-n",
    "count",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Number of entries, 0 for all.",
)
"""`-n`: how many."""
