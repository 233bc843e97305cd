"""Streams of events for tests, read in each form in which they can arrive."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tooltrail.records import ToolCall
from tooltrail.wire import Response, read_stream, wire_format

Event = Mapping[str, Any]


def server_sent(events: Sequence[Event], *, is_done: bool = False) -> bytes:
    """The events as a body of server-sent events (WHATWG HTML, section 9.2)."""
    lines = [f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events]
    # Characters that UTF-8 cannot encode become JSON escapes.
    return "".join([*lines, *["data: [DONE]\n\n"] * is_done]).encode("utf-8", "backslashreplace")


def read_events(format_name: str, *events: Event, is_done: bool = False) -> Response:
    """The answer of a stream; must be the same from objects, at once, and byte by byte."""
    known = wire_format(format_name)
    body = server_sent(events, is_done=is_done)
    whole = read_stream(known, [body])
    assert read_stream(known, (body[at : at + 1] for at in range(len(body)))) == whole
    assert read_stream(known, [body.replace(b"\n", b"\r\n")]) == whole
    if not is_done:
        objects = [json.loads(json.dumps(event)) for event in events]
        assert read_stream(known, objects) == whole
    return whole


def told(call: ToolCall) -> tuple[str, str | None, str]:
    """A short form of a call, for comparisons."""
    return call.tool_name, call.call_id, call.arguments_raw
