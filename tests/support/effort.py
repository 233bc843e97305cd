"""How much a fault test tries: `TOOLTRAIL_TEST_EFFORT`, 1 by default, more before a release."""

import os

ENVIRONMENT_VARIABLE = "TOOLTRAIL_TEST_EFFORT"


def effort(count: int, *, most: int | None = None) -> int:
    """How often to try something that is tried `count` times by default.

    Args:
        count: tries at an effort of 1.
        most: tries that are enough at any effort.
    """
    tries = max(1, round(count * float(os.environ.get(ENVIRONMENT_VARIABLE, "1"))))
    return tries if most is None else min(tries, most)
