"""Times as people write them, and as they are shown."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cli import Cli

from tooltrail.cli._output import UTC_TIMES
from tooltrail.cli._times import parse_moment, shown

# Two hours east of Greenwich in summer, one in winter.
ZONE = "CET-1CEST,M3.5.0,M10.5.0/3"
NOW = datetime(2026, 7, 15, 9, 30, 15, tzinfo=timezone(timedelta(hours=2)))


@pytest.fixture(autouse=True, scope="module")
def central_europe() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", ZONE)
        time.tzset()
        yield
    time.tzset()


def utc(  # noqa: PLR0917  as datetime takes them
    year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0, us: int = 0
) -> datetime:
    return datetime(year, month, day, hour, minute, second, us, tzinfo=UTC)


def test_a_time_means_what_people_mean() -> None:
    for text, meant in (
        ("now", utc(2026, 7, 15, 7, 30, 15)),
        ("today", utc(2026, 7, 14, 22)),
        ("Yesterday", utc(2026, 7, 13, 22)),
        ("30s", utc(2026, 7, 15, 7, 29, 45)),
        ("1.5h", utc(2026, 7, 15, 6, 0, 15)),
        ("2h", utc(2026, 7, 15, 5, 30, 15)),
        (" 3 d ", utc(2026, 7, 12, 7, 30, 15)),
        ("1w", utc(2026, 7, 8, 7, 30, 15)),
        ("15M", utc(2026, 7, 15, 7, 15, 15)),
        ("2026-07-01", utc(2026, 6, 30, 22)),
        ("2026-07-01T12:00", utc(2026, 7, 1, 10)),
        ("2026-07-01 12:00:30.25", utc(2026, 7, 1, 10, 0, 30, 250_000)),
        ("2026-07-01T12:00:00Z", utc(2026, 7, 1, 12)),
        ("2026-07-01T12:00:00+05:30", utc(2026, 7, 1, 6, 30)),
        # Winter has another offset than the summer in which we ask.
        ("2026-01-15", utc(2026, 1, 14, 23)),
        ("2026-01-15T12:00", utc(2026, 1, 15, 11)),
    ):
        assert parse_moment(text, NOW) == meant
        assert parse_moment(text, NOW).tzinfo is UTC


def test_a_day_on_which_the_clock_moved_begins_at_its_own_midnight() -> None:
    after_the_change = datetime(2026, 3, 29, 12, tzinfo=timezone(timedelta(hours=2)))
    assert parse_moment("today", after_the_change) == utc(2026, 3, 28, 23)
    assert parse_moment("yesterday", after_the_change) == utc(2026, 3, 27, 23)


@pytest.mark.parametrize(
    "text", ["", "soon", "2 fortnights", "h", "-2h", "1.2.5h", "2026-13-01", "12:00"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Invalid|duration|month"):
        parse_moment(text, NOW)


@pytest.mark.parametrize(
    "text", ["999999999w", "99999999999s", "0001-01-01", "9999-12-31T23:59:59-12:00"]
)
def test_a_time_beyond_the_calendar_is_refused(text: str) -> None:
    with pytest.raises((OverflowError, ValueError)):
        parse_moment(text, NOW)


@pytest.mark.parametrize("text", ["soon", "999999999w", "0001-01-01"])
@pytest.mark.parametrize("flag", ["--since", "--until"])
def test_the_flags_say_which_forms_there_are(cli: Cli, flag: str, text: str) -> None:
    ended = cli.run("log", flag, text)
    assert ended.code == 2
    forms = "RFC 3339, a date, 2h, 3d, 1w, today or yesterday"
    assert ended.usage_error == f"Invalid value for '{flag}': {text!r} is not {forms}"


@given(st.text(max_size=20))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    try:
        moment = parse_moment(text, NOW)
    except (ValueError, OverflowError):
        return
    assert moment.tzinfo is UTC


@given(st.datetimes(min_value=datetime(1975, 1, 1), max_value=datetime(2199, 1, 1)))  # noqa: DTZ001
def test_a_time_with_a_zone_comes_back_exactly(naive: datetime) -> None:
    moment = naive.replace(tzinfo=UTC)
    assert parse_moment(moment.isoformat(), NOW) == moment
    assert parse_moment(moment.astimezone(NOW.tzinfo).isoformat(), NOW) == moment


@given(st.integers(0, 10**9 - 1), st.sampled_from("smhd"))
def test_so_long_ago_is_so_long_before_now(amount: int, unit: str) -> None:
    seconds = amount * {"s": 1, "m": 60, "h": 3600, "d": 86_400}[unit]
    if seconds > 60_000_000_000:
        return
    assert NOW - parse_moment(f"{amount}{unit}", NOW) == timedelta(seconds=seconds)


def test_times_are_shown_local_or_in_utc_to_the_second() -> None:
    moment = utc(2026, 1, 2, 23, 30, 59, 999_999)
    assert shown(moment) == "2026-01-03 00:30:59"
    assert shown(None) == ""
    with click.Context(click.Command("log")) as context:
        context.meta[UTC_TIMES] = True
        assert shown(moment) == "2026-01-02 23:30:59Z"
