"""Options that several commands share."""

import os
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tooltrail.cli._default_database import default_database
from tooltrail.cli._exec_options import OPTIONS, read_session
from tooltrail.cli._location import Location
from tooltrail.cli._output import RAW, UTC_TIMES, Listing

Decorated = Callable[..., Any]


class NamedOption(click.Option):
    """An option whose empty value counts as not given.

    The program has some of these options, too, before the command. The value after the command
    takes precedence, then the value before the command, then the environment.
    """

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        """Return the value and its source: the command line, else the environment."""
        value, source = super().consume_value(ctx, opts)
        if value == "":
            value, source = super().consume_value(ctx, {})
        before = ctx.find_root().params.get(self.name or "")
        is_given = source is ParameterSource.COMMANDLINE
        return (before, ParameterSource.COMMANDLINE) if before and not is_given else (value, source)


_MOST = 1 << 48
"""More than any store has; both databases can count further."""


class Number(click.IntRange):
    """A whole number in a range, without a unit. A number above `_MOST` counts as `_MOST`."""

    name = "whole number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or fail with a usage error."""
        return min(super().convert(value, param, ctx), _MOST)


class SourcePath(click.Path):
    """A file or folder to read. An empty text, such as an unset variable, is not the folder `.`."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Return the path, or fail with a usage error."""
        if value == "":
            raise click.UsageError("PATH is empty; name a file or a folder", ctx)
        return super().convert(value, param, ctx)


def _known_format(_: object, __: object, name: str | None) -> str | None:
    if name is None:
        return None
    from tooltrail.importers import FORMATS  # noqa: PLC0415  takes time

    if name not in FORMATS:
        raise click.UsageError(f"no format {name}; the formats are {', '.join(FORMATS)}")
    return name


format_option = click.option(
    *("--format", "format_name"),
    metavar="NAME",
    callback=_known_format,
    help="Read every file as this format.",
)


def named_option(flag: str, **more: Any) -> Callable[[Decorated], Decorated]:
    """An option that `exec` also has, with the same variable and help text."""
    (option,) = (one for one in OPTIONS if one.flag == flag)
    return click.option(
        flag,
        cls=NamedOption,
        envvar=option.variable,
        metavar=option.metavar,
        help=option.help,
        **more,
    )


def session_name(_: object, __: object, name: str | None) -> str | None:
    """A callback that checks the name of a session to record into like `exec` does."""
    try:
        return None if name is None else read_session(name)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from error


def gathered(name: str, kind: Callable[..., Any]) -> Callable[[Decorated], Decorated]:
    """Pass the options that are parameters of `kind` to the command as one `kind` object."""
    options = list(signature(kind).parameters)

    def decorate(function: Decorated) -> Decorated:
        @wraps(function)
        def with_one(*args: Any, **kwargs: Any) -> Any:
            values = {option: kwargs.pop(option) for option in options}
            return function(*args, **{name: kind(**values)}, **kwargs)

        return with_one

    return decorate


def stacked(*decorators: Callable[[Any], Any]) -> Callable[[Decorated], Decorated]:
    """Combine several decorators into one; `--help` lists their options in this order."""

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
"""`--db`, `--artifacts` and `--spool`, passed to the command as one argument `location`."""


def _output_flag(flag: str, key: str, help_text: str) -> Callable[[Any], Any]:
    """A flag for all output of a command, before or after the command; see `is_given`."""

    def keep(context: click.Context, _: click.Parameter, value: bool) -> None:
        context.meta[key] = value or context.meta.get(key)

    return click.option(flag, is_flag=True, expose_value=False, callback=keep, help=help_text)


raw_option = _output_flag("--raw", RAW, "Print control characters on a terminal, too.")
"""`--raw`: let recorded bytes through to a terminal; see `write_block`."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
"""`--json`: print one JSON array, each element with its `schema_version`."""


def _listing(*, json: bool, ndjson: bool, csv: bool, fields: str | None) -> Listing:
    styles = {"json": json, "ndjson": ndjson, "csv": csv}
    chosen = [style for style, is_chosen in styles.items() if is_chosen]
    if len(chosen) > 1:
        raise click.UsageError(f"--{chosen[0]} cannot be combined with --{chosen[1]}")
    return Listing(chosen[0] if chosen else None, fields)


output_options = stacked(
    click.option("--json", is_flag=True, help="Print one JSON array."),
    click.option("--ndjson", is_flag=True, help="Print one JSON object per line."),
    click.option(
        "--csv",
        is_flag=True,
        help="Print CSV. A formula begins with an apostrophe, so that it does not run.",
    ),
    click.option("--fields", metavar="A,B", help="Print only these fields, in this order."),
    gathered("output", _listing),
)
"""The output styles of a list, passed to the command as one argument `output`."""

time_option = _output_flag("--utc", UTC_TIMES, "Show times in UTC, not local time.")
"""`--utc`: show times in UTC. By default, times are shown in the local zone."""

count_option = click.option(
    "-n",
    "count",
    metavar="N",
    type=Number(min=0),
    default=20,
    show_default=True,
    help="Number of entries, 0 for all.",
)
"""`-n`: the number of entries to print."""
