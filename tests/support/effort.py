"""The number of repetitions of random tests: kills, power cuts, generated examples.

`$TOOLTRAIL_TEST_EFFORT` is a factor: 1 by default and in CI, 10 or 100 before a release.
"""

import os

EFFORT = int(os.environ.get("TOOLTRAIL_TEST_EFFORT", "1"))


def times(count: int, *, most: int | None = None) -> int:
    """The number of repetitions, from the number at effort 1.

    Args:
        count: number at effort 1.
        most: upper limit at any effort.
    """
    tries = count * EFFORT
    return tries if most is None else min(tries, most)
