r"""Checks of `pattern` and `format`. A format without a check is refused.

Patterns are regular expressions of ECMA-262 with Unicode, as JSON Schema requires.

Formats follow the grammars of RFC 1123, 3339, 3986, 5321, 6901 and 9562. Most checks of the library
`jsonschema` do not: `email` requires only an `@`; `date-time` and `time` refuse leap seconds; these
two and `uri` accept a newline at the end; `duration` accepts `P1.5D` and `P1Y1D`; `hostname`
accepts a dot at the end; `uuid` accepts `_`; `regex` is Python's. If a package is missing they
accept anything, and importing all packages takes two seconds.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import cast

import regress
import rfc3986_validator  # type: ignore[import-untyped]  # it has no types
from jsonschema import FormatChecker

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME = rf"^(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*$"

_JSON_POINTER = "^(?:/(?:[^~/]|~[01])*)*$"

_TIME = re.compile(
    r"(?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d):(?P<second>[0-5]\d|60)(?:\.\d+)?"
    r"(?:[Zz]|(?P<sign>[+-])(?P<hours>[01]\d|2[0-3]):(?P<minutes>[0-5]\d))",
    re.ASCII,
)

_UUID = "^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"

_DURATION = (
    r"^P(?=.)(?:\d+W|(?:\d+D|\d+M(?:\d+D)?|\d+Y(?:\d+M(?:\d+D)?)?)?"
    r"(?:T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S))?)$"
)
"""RFC 3339, appendix A."""

_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\-]+"
_LOCAL_PART = rf'^(?:{_ATOM}(?:\.{_ATOM})*|"(?:[ !#-\[\]-~]|\\[ -~])*")$'
"""RFC 5321, section 4.1.2."""

_LOCAL_PART_CHARS = 64
"""RFC 5321, section 4.5.3.1.1."""


@lru_cache(maxsize=256)
def compiled(pattern: str) -> regress.Regex:
    """A compiled pattern.

    Raises:
        regress.RegressError: the pattern is not valid.
        UnicodeError: the pattern has a lone surrogate.
    """
    return regress.Regex(pattern, "u")


def is_found(pattern: str, text: str) -> bool:
    """Whether a text matches a pattern anywhere. A text with a lone surrogate never matches.

    Raises:
        regress.RegressError: the pattern is not valid.
    """
    try:
        return compiled(pattern).find(text) is not None
    except UnicodeError:
        return False


def pattern_problem(text: str) -> str:
    """The error in a pattern; empty if the pattern is valid."""
    try:
        compiled(text)
    except (regress.RegressError, UnicodeError) as error:
        return f"is not a regular expression of ECMA-262: {error}"
    return ""


def _is_time(text: str) -> bool:
    found = _TIME.fullmatch(text)
    if found is None or found["second"] != "60":
        return found is not None
    # RFC 3339, section 5.7: a leap second is the last second of a day in UTC.
    ahead = int(found["hours"] or 0) * 60 + int(found["minutes"] or 0)
    minute = int(found["hour"]) * 60 + int(found["minute"])
    return (minute + ahead if found["sign"] == "-" else minute - ahead) % 1440 == 1439


def _by_rule(rule: str) -> Callable[[str], bool]:
    validate = cast("Callable[[str, str], object]", rfc3986_validator.validate_rfc3986)
    # Its expressions end in `$`, which also matches before a final newline.
    return lambda text: not text.endswith("\n") and bool(validate(text, rule))


def _is_moment(text: str) -> bool:
    return text[10:11] in ("T", "t") and _is_date(text[:10]) and _is_time(text[11:])


def _is_email(text: str) -> bool:
    local, separator, domain = text.rpartition("@")
    return (
        bool(separator)
        and len(local) <= _LOCAL_PART_CHARS
        and is_found(_LOCAL_PART, local)
        and _is_mail_domain(domain)
    )


def _is_mail_domain(domain: str) -> bool:
    if not (domain.startswith("[") and domain.endswith("]")):
        return is_found(_HOSTNAME, domain)
    literal = domain[1:-1]
    if literal[:5].upper() == "IPV6:":
        return _is_ipv6(literal[5:])
    return _is_ipv4(literal)


_LIBRARY = FormatChecker(("date", "ipv4", "ipv6"))

_is_date, _is_ipv4, _is_ipv6 = (
    partial(_LIBRARY.conforms, format=name) for name in ("date", "ipv4", "ipv6")
)

FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date": _is_date,
    "time": _is_time,
    "date-time": _is_moment,
    "duration": partial(is_found, _DURATION),
    "email": _is_email,
    "hostname": partial(is_found, _HOSTNAME),
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "uri": _by_rule("URI"),
    "uri-reference": _by_rule("URI_reference"),
    "uuid": partial(is_found, _UUID),
    "json-pointer": partial(is_found, _JSON_POINTER),
    "regex": lambda text: not pattern_problem(text),
}
"""Checks by the names of draft 2020-12. All apply to strings only."""


def _checked(check: Callable[[str], bool]) -> Callable[[object], bool]:
    return lambda instance: not isinstance(instance, str) or check(instance)


CHECKER = FormatChecker(())
"""Checks the formats of `FORMATS` only."""

for _name, _check in FORMATS.items():
    CHECKER.checkers[_name] = (_checked(_check), ())
