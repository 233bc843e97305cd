"""Patterns of ECMA-262 with Unicode, as JSON Schema has them; never those of Python."""

from functools import lru_cache

import regress


@lru_cache(maxsize=256)
def compiled(pattern: str) -> regress.Regex:
    """A pattern, ready to be looked for.

    Raises:
        regress.RegressError: it is none.
        UnicodeError: it has a lone surrogate.
    """
    return regress.Regex(pattern, "u")


def is_found(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text; in one with a lone surrogate none is.

    Raises:
        regress.RegressError: it is none.
    """
    try:
        return compiled(pattern).find(text) is not None
    except UnicodeError:
        # No character that any pattern could mean.
        return False


def is_pattern(text: str) -> bool:
    """Whether a text is a pattern."""
    return not pattern_problem(text)


def pattern_problem(text: str) -> str:
    """Why a text is no pattern; empty if it is one."""
    try:
        compiled(text)
    except (regress.RegressError, UnicodeError) as error:
        return f"is no regular expression of ECMA-262: {error}"
    return ""
