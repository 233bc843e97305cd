"""The formats that are enforced: those whose checker refuses what their specification refuses.

`email` is not among them: the checker that there is takes any text with an `@`. `duration` is not,
since the checker takes what RFC 3339 does not. A pattern says more than either would.
"""

import regress
from jsonschema import Draft202012Validator, FormatChecker

_OF_THE_LIBRARY = (
    *("date", "date-time", "time"),  # RFC 3339
    *("ipv4", "ipv6", "hostname", "uuid"),  # RFC 2673, 4291, 1123, 4122
    *("uri", "uri-reference", "json-pointer"),  # RFC 3986, 6901
)

FORMATS = frozenset({*_OF_THE_LIBRARY, "regex"})
"""Their names in a schema."""

CHECKER = FormatChecker(())
"""Checks these and no others."""

for _name in _OF_THE_LIBRARY:
    CHECKER.checkers[_name] = Draft202012Validator.FORMAT_CHECKER.checkers[_name]


@CHECKER.checks("regex", raises=(regress.RegressError, UnicodeError))
def _is_pattern(instance: object) -> bool:
    return not isinstance(instance, str) or bool(regress.Regex(instance, "u"))
