"""Blocks come back in their order, and few of them are held."""

import pytest

from tooltrail.artifacts._frame_queue import IN_FLIGHT, IN_FLIGHT_BYTES, THREADS, FrameQueue


@pytest.mark.parametrize(
    ("size", "most"),
    [
        (1, IN_FLIGHT),
        (256 * 1024, IN_FLIGHT),
        (1024 * 1024, max(THREADS + 2, IN_FLIGHT_BYTES // (1024 * 1024))),
    ],
)
def test_no_more_blocks_wait_than_may_and_all_come_back_in_order(size: int, most: int) -> None:
    queue = FrameQueue(size)
    taken: list[int] = []
    for number in range(3 * most):
        queue.put(bytearray([number]) * size)
        taken += [compressed.block[0] for compressed in queue.ready()]
        assert number + 1 - len(taken) <= most
    taken += [compressed.block[0] for compressed in queue.drain()]
    assert queue.is_empty
    assert taken == list(range(3 * most))
