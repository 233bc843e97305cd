"""What the tests of all adapters need."""

import asyncio
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_event_loop_is_left() -> Iterator[None]:
    """Close the event loop that a framework made for this thread and did not close."""
    yield
    with warnings.catch_warnings(action="ignore"):
        try:
            loop = asyncio.get_event_loop()
        except RuntimeError:  # there is none
            return
    loop.close()
    asyncio.set_event_loop(None)
