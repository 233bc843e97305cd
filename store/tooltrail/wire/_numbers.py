"""Numbers that a double does not hold: JSON has them, and most of what reads JSON does not."""

import json
import re
from decimal import Decimal, InvalidOperation

_SUSPECT = re.compile(r"[\d.]{17}|[eE][-+]?\d{2}")
"""So many digits, or an exponent: anything shorter is the shortest spelling of some double."""


def rounded_numbers(text: str) -> list[str]:
    """The numbers with a fraction or an exponent that another number stands for once read.

    Returns:
        Their spellings, in their order. Integers are read exactly.
    """
    if _SUSPECT.search(text) is None:
        return []
    rounded: list[str] = []

    def read(spelled: str) -> float:
        value = float(spelled)
        try:
            if Decimal(spelled) != Decimal(repr(value)):
                rounded.append(spelled)
        except InvalidOperation:  # an exponent of more digits than a decimal takes
            rounded.append(spelled)
        return value

    json.loads(text, parse_float=read)
    return rounded
