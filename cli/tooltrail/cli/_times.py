"""Times, sizes and signals on the command line: `2h`, `yesterday`; `64K`; `SIGKILL`, `9`."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta, tzinfo
from time import timezone
from typing import Any

import click

from tooltrail.cli._amounts import (
    A_DURATION,
    A_SIZE,
    DURATIONS,
    parse_milliseconds,
    read_byte_count,
)
from tooltrail.cli._output import UTC_TIMES, is_given

_LONGEST = timedelta(days=36_500)


class Parsed(click.ParamType[Any]):
    """The type of an option that `read` parses. Other text is a usage error: it is not `what`.

    Without `what`, the error of `read` is the message.
    """

    def __init__(self, name: str, read: Callable[[str], Any], what: str = "") -> None:
        self.name = name
        self.read = read
        self.what = what

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the text, or fail with a usage error."""
        try:
            return self.read(str(value))
        except (ValueError, OverflowError) as error:
            message = f"{value!r} is not {self.what}" if self.what else str(error)
            self.fail(message, param, ctx)


def parse_duration(text: str) -> timedelta:
    """Parse a duration such as `24h`, at most about 100 years.

    Raises:
        ValueError: the text is not a duration, or the duration is too long.
        OverflowError: the duration is too long for `timedelta`.
    """
    duration = timedelta(milliseconds=parse_milliseconds(text))
    if duration > _LONGEST:
        raise ValueError("longer than any age")
    return duration


def parse_moment(text: str, now: datetime) -> datetime:
    """Parse a time relative to `now`, an aware time in the local zone; the result is aware UTC.

    Raises:
        ValueError: the text is not a time.
        ValueError, OverflowError: the time is before the year 1 or after the year 9999.
    """
    word = text.strip().lower()
    midnight = datetime.combine(now.date(), time())
    named = {"now": now, "today": midnight, "yesterday": midnight - timedelta(days=1)}
    if word in named:
        moment = named[word]
    elif word.endswith(tuple(DURATIONS)):
        moment = now - timedelta(milliseconds=parse_milliseconds(word))
    else:
        moment = datetime.fromisoformat(text.strip().upper())
    # A naive time gets the UTC offset of its own day, which can differ from the one of today.
    return moment.astimezone(UTC)


def parse_signal(text: str) -> int:
    """The number of a signal that is given as `9`, `KILL` or `SIGKILL`; `ValueError` if unknown."""
    from signal import Signals  # noqa: PLC0415  few commands need it

    if text.isdecimal() and 1 <= int(text) <= 128:
        return int(text)
    name = f"SIG{text.upper().removeprefix('SIG')}"
    if name not in Signals.__members__:
        raise ValueError(text)
    return Signals[name].value


def shown_zone() -> tzinfo | None:
    """The zone in which times are shown: UTC with `--utc`, else None for the local zone.

    Python refuses a local zone that is a day or more from UTC, such as `TZ=XYZ-99`. Then it is UTC.
    """
    return UTC if is_given(UTC_TIMES) or abs(timezone) * 1000 >= DURATIONS["d"] else None


def shown(moment: datetime | None, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Format a time to the second in the shown zone; an empty string for None."""
    if moment is None:
        return ""
    zone = shown_zone()
    return moment.astimezone(zone).strftime(form) + ("Z" if zone else "")


def shown_in_list(moment: datetime | None) -> str:
    """Format a time for a row of a list: short on a terminal, without today's date or this year."""
    if moment is None or not sys.stdout.isatty():
        return shown(moment)
    zone = shown_zone()
    at, now = moment.astimezone(zone), datetime.now(UTC).astimezone(zone)
    form = "%H:%M:%S" if at.date() == now.date() else "%b %d %H:%M"
    return shown(moment, form if at.year == now.year else "%Y-%m-%d")


MOMENT = Parsed(
    "time",
    lambda text: parse_moment(text, datetime.now().astimezone()),
    "RFC 3339, a date, 2h, 3d, 1w, today or yesterday",
)
"""A point in time. Without a zone, local time; for a date or a day, its first moment."""

DURATION = Parsed("duration", parse_duration, A_DURATION)
"""A length of time, with the same units as the relative times of `MOMENT`."""

SIZE = Parsed("size", read_byte_count, A_SIZE)
"""A number of bytes."""

SIGNAL = Parsed("signal", parse_signal, "a signal such as SIGKILL, or its number")
"""The number of a signal."""
