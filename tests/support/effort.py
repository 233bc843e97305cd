"""How much the fault tests try: one variable for all of them.

`TOOLTRAIL_TEST_EFFORT=1`, the default, is small enough for every change. 10 or 100 is for a
release: ten or a hundred times as many kills, cuts of power and seconds of load.
"""

import os

EFFORT = int(os.environ.get("TOOLTRAIL_TEST_EFFORT", "1"))


def times(few: int) -> int:
    """How often something is tried that is tried `few` times at the smallest effort."""
    return few * EFFORT
