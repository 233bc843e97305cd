"""Durations and sizes on the command line: `30s`, `1.5h`; `64K`. Does not import click."""

import re
from typing import Final

_MOST_SECONDS: Final = 1_000_000_000
"""About 32 years: more than any timeout, and safe for a timer in milliseconds."""

_LEAST_TIMEOUT: Final = 0.001
"""In seconds. A record has timeouts in milliseconds."""

_SIZES: Final[dict[str, int]] = {"": 1, "b": 1} | {
    f"{letter}{ending}": base**power
    for power, letter in enumerate("kmgt", 1)
    for ending, base in (("", 1024), ("ib", 1024), ("b", 1000))
}
"""The units of a size in bytes: K and KiB are powers of 1024, kB is a power of 1000."""

DURATIONS: Final = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
"""The units of a duration, in milliseconds."""

_AMOUNT: Final = r"(?i)(\d{1,15}(?:\.\d{1,6})?)\s*([a-z]*)"

A_DURATION: Final = "a duration such as 200ms, 30s, 5m, 1.5h, 7d or 2w"
A_SIZE: Final = "a size such as 512, 64K, 10kB or 1.5GiB"


def parse_milliseconds(text: str) -> int | float:
    """Parse a duration such as `1.5h` in milliseconds; raises `ValueError`."""
    found = re.fullmatch(_AMOUNT, text.strip())
    if found is None or found[2].lower() not in DURATIONS:
        raise ValueError(f"{text!r} is not {A_DURATION}")
    exact = float(found[1]) * DURATIONS[found[2].lower()]
    if exact >= 1 << 63:  # no database has such a number
        raise ValueError(f"{text!r} is not {A_DURATION}: it is too long")
    return int(exact) if exact == int(exact) else exact


def read_seconds(text: str) -> float:
    """Parse a duration or a number of seconds; raises `ValueError`, also if no timer accepts it."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = parse_milliseconds(text) / 1000
    if not 0 <= seconds <= _MOST_SECONDS:
        raise ValueError(f"{text!r} is not between 0 and {_MOST_SECONDS:,} seconds")
    return seconds


def read_timeout(text: str) -> float:
    """Parse a duration, or a number of seconds, of at least a millisecond."""
    seconds = read_seconds(text)
    if seconds < _LEAST_TIMEOUT:
        raise ValueError(f"{text!r} is shorter than 1 ms")
    return seconds


def read_byte_count(text: str) -> int:
    """Parse a size, rounded up to a byte; raises `ValueError`."""
    match = re.fullmatch(r"([0-9]{1,19})(?:\.([0-9]{1,6}))?\s*([a-z]*)", text.strip().lower())
    if match is None or match[3] not in _SIZES:
        raise ValueError(f"{text!r} is not {A_SIZE}")
    millionths = int(match[1] + (match[2] or "").ljust(6, "0"))
    size = -(-millionths * _SIZES[match[3]] // 1_000_000)
    if size >= 1 << 63:
        raise ValueError(f"{text!r} is not {A_SIZE}: it is too large")
    return size
