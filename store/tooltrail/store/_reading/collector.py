"""Making very many objects without the interpreter looking for cycles among them meanwhile.

Rows and what is made of them refer to no others. Each time some hundred more are there Python's
collector of cycles looks at them all the same, and now and then at all that the program has: two
fifths of the time that a long transcript takes.
"""

import gc
import os
from collections.abc import Generator
from contextlib import contextmanager
from weakref import WeakSet


class _Pause:
    """The collector rests, where it did not already, until nobody refers to this.

    Two at once end with the first; what that costs the second is time.
    """

    is_ours = False

    def __init__(self) -> None:
        _pauses.add(self)
        self.is_ours = gc.isenabled()
        gc.disable()

    def __del__(self) -> None:
        if self.is_ours:
            gc.enable()


@contextmanager
def collector_paused() -> Generator[None]:
    """No search for cycles in this process, while the block makes much that has none.

    For as long as memory allows: no cycle that other threads leave behind is found meanwhile.
    """
    pause = _Pause()
    try:
        yield
    finally:
        # Not when the traceback of an error is gone, which somebody may keep.
        del pause


_pauses: WeakSet[_Pause] = WeakSet()


def _go_on() -> None:
    if any(pause.is_ours for pause in _pauses):
        gc.enable()


if hasattr(os, "register_at_fork"):
    # Whoever paused it may be a thread that a child does not have.
    os.register_at_fork(after_in_child=_go_on)
