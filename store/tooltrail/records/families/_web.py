"""Types that web results share: addresses without secrets, and times."""

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, PlainSerializer

from tooltrail.records._model import Sentence

_BLANKS = "".join(map(chr, range(0x21)))
_IGNORED = str.maketrans("", "", "\t\n\r")

_SCHEME = r"(?:[a-z][a-z0-9+.-]*:)?[/\\]*+"
r"""The part before a name and password; browsers also accept `https:u:p@h` and `http:\\u:p@h`."""

_START = re.compile(_SCHEME, re.IGNORECASE)
_USERINFO = re.compile(rf"[\x00-\x20]*+{_SCHEME}[^/?#]*@", re.IGNORECASE)
"""Everything up to the last `@` before the host."""


def without_userinfo(url: str) -> str:
    """An address without the name and password that may precede its host.

    Leading and trailing blanks, and all tabs and newlines, which a browser ignores (WHATWG URL,
    section 4.4), are removed first.
    """
    bare = url.strip(_BLANKS).translate(_IGNORED)
    start = _START.match(bare)
    end = kept = start.end() if start else 0
    while match := _USERINFO.match(bare, end):
        end = match.end()
    return (bare[:kept] + bare[end:]).lstrip(_BLANKS)


def spell_moment(moment: datetime) -> str:
    """A time in UTC, spelled as in JSON."""
    return moment.isoformat().removesuffix("+00:00") + "Z"


def _bare_url(value: object) -> object:
    # This runs before surrogates are escaped: that would put a backslash into a password.
    return without_userinfo(value) if isinstance(value, str) else value


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("a time that no calendar has in UTC") from error


Url = Annotated[Sentence, BeforeValidator(_bare_url)]
"""An address; its name and password are removed, since they must not be recorded."""

Moment = Annotated[AwareDatetime, AfterValidator(_in_utc), PlainSerializer(spell_moment)]
"""A time in UTC, in JSON as ISO 8601 with a `Z`."""
