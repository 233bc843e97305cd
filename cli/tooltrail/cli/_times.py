"""Times as people write them: RFC 3339, a date, `2h`, `3d`, `yesterday`."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from typing import Any

import click

_AGO = re.compile(r"(\d{1,9})\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST = timedelta(days=36_500)


class Time(click.ParamType[Any]):
    """Reads a time with `read`. An unreadable text is a usage error: it is not `what`."""

    def __init__(self, name: str, read: Callable[[str], object], what: str) -> None:
        self.name = name
        self._read = read
        self._what = what

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        """Read a time, or fail as a usage error."""
        try:
            return self._read(str(value))
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not {self._what}", param, ctx)


def parse_duration(text: str) -> timedelta:
    """Read a duration such as `24h`, at most some hundred years.

    Raises:
        ValueError: not a duration, or a longer one.
        OverflowError: a much longer one.
    """
    match = _AGO.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError("not a duration")
    duration = timedelta(seconds=int(match[1]) * _SECONDS[match[2]])
    if duration > _LONGEST:
        raise ValueError("longer than any age")
    return duration


def lasting(duration: timedelta) -> str:
    """A duration for people, as `parse_duration` reads it: in the largest unit that is exact."""
    seconds = int(duration.total_seconds())
    unit = next(unit for unit in reversed(_SECONDS) if seconds % _SECONDS[unit] == 0)
    return f"{seconds // _SECONDS[unit]}{unit}" if seconds else "0s"


def parse_moment(text: str, now: datetime) -> datetime:
    """Read a time relative to `now`, an aware time in the local zone; the result is aware UTC.

    Raises:
        ValueError: not a time.
        ValueError, OverflowError: before the year 1 or after the year 9999.
    """
    word = text.strip().lower()
    midnight = datetime.combine(now.date(), time())
    if word == "now":
        moment = now
    elif word == "today":
        moment = midnight
    elif word == "yesterday":
        moment = midnight - timedelta(days=1)
    elif ago := _AGO.fullmatch(word):
        moment = now - timedelta(seconds=int(ago[1]) * _SECONDS[ago[2]])
    else:
        moment = datetime.fromisoformat(text.strip())
    # A naive time gets the offset of its own day, which summer time may have moved since.
    return moment.astimezone(UTC)


def shown(moment: datetime | None, *, utc: bool) -> str:
    """A time for people, to the second."""
    if moment is None:
        return ""
    if utc:
        return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


MOMENT = Time(
    "time",
    lambda text: parse_moment(text, datetime.now().astimezone()),
    "RFC 3339, a date, 2h, 3d, today or yesterday",
)
"""A point in time. What has no zone is local time; a date or a day is its first moment."""

DURATION = Time("duration", parse_duration, "a duration such as 30s, 15m, 24h, 7d, 2w")
"""A length of time, spelled as the ages that a point in time can be."""
