"""A handler run under `invoke` with `Invocation.finish`: every ending has a row, and a receipt."""

import asyncio

import pytest
from tests.support.evidence import check_evidence

from tooltrail.records import SearchOutput, StreamRecord, ToolCall, ainvoke, invoke
from tooltrail.store import Store

CALL = ToolCall.of("Read", {"path": "a.txt"})


def test_what_a_handler_returns_is_stored_and_its_receipt_comes_back(store: Store) -> None:
    invocation = store.open_session().start(CALL)

    finished = invoke(lambda arguments: f"text of {arguments['path']}", CALL, invocation.finish)

    assert (finished.state, finished.receipt.text) == ("success", "text of a.txt\n")
    assert store.reader.invocation(finished.invocation_id).summary.state == "success"
    check_evidence(store)


def test_what_a_handler_raises_is_stored_as_its_failure(store: Store) -> None:
    invocation = store.open_session().start(CALL)

    def handler(_arguments: dict[str, object]) -> str:
        raise FileNotFoundError(2, "No such file", "a.txt")

    finished = invoke(handler, CALL, invocation.finish)

    assert finished.state == "error"
    assert finished.receipt.text.startswith("Error (tool_execution_failed): FileNotFoundError: ")
    check_evidence(store)


def test_a_cancelled_handler_has_a_row_and_the_cancellation_goes_on(store: Store) -> None:
    invocation = store.open_session().start(CALL)

    async def cancelled() -> None:
        started = asyncio.Event()

        async def handler(_arguments: dict[str, object]) -> None:
            started.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(ainvoke(handler, CALL, invocation.finish))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert store.reader.invocation(invocation.id).summary.state == "cancelled"
    check_evidence(store)


def test_plain_content_of_a_tool_with_a_family_is_worded_by_generic(store: Store) -> None:
    invocation = store.open_session().start(CALL)
    finished = invoke(lambda _: {"rows": 2}, CALL, invocation.finish)

    detail = store.reader.invocation(finished.invocation_id)
    assert detail.summary.family == "file_read"
    assert detail.receipt is not None
    assert (detail.receipt.renderer_name, detail.receipt.text) == ("generic", '{\n  "rows": 2\n}\n')


def test_a_result_of_another_family_is_worded_by_that_family(store: Store) -> None:
    matches = StreamRecord.from_bytes("matches", b"a.py:1:x\n")
    found = SearchOutput(match_count=1, returned=1, matches=matches)
    invocation = store.open_session().start(CALL)
    finished = invoke(lambda _: found, CALL, invocation.finish)

    detail = store.reader.invocation(finished.invocation_id)
    assert (detail.summary.state, detail.summary.family) == ("success", "file_read")
    assert detail.receipt is not None
    assert detail.receipt.renderer_name == "search"
    assert "a.py:1:x" in detail.receipt.text
    check_evidence(store)
