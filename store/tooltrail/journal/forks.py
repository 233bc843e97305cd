"""What a forked child must not inherit: the locks and threads of its parent."""

import os
import weakref
from typing import Any

resets_in_child: "weakref.WeakSet[Any]" = weakref.WeakSet()
"""Objects whose `reset` a forked child calls."""


def _reset_in_child() -> None:
    for one in list(resets_in_child):
        one.reset()


os.register_at_fork(after_in_child=_reset_in_child)
