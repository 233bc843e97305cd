"""Making anew what lists with filters are found by, of a whole store at once."""

from collections.abc import Callable

from tooltrail.store._reading.ranges import remake_all
from tooltrail.store.store import Store

OnRange = Callable[[int], None]
"""Called with the number of ranges that are made."""


def index_invocations(store: Store, on_range: OnRange | None = None) -> int:
    """Throw away what is known of ranges of invocations, and make it anew; how many were made.

    Lists are the same before, meanwhile and after, only slower meanwhile; so it can be killed, and
    lists go on with it. Nothing that is thrown away is evidence.

    Raises:
        UnavailableError, DamageError: the store cannot be read or written now.
    """
    store.confirm()
    count = 0
    for count, _ in enumerate(remake_all(store.database), 1):
        if on_range is not None:
            on_range(count)
    return count
