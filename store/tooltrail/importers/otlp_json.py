"""OTLP/JSON: exports of spans, with the attributes of GenAI or of OpenInference.

The span of a tool has what the tool returned: the complete output. The span of a chat has the
conversation before its answer; only there stands what the model saw of a result. A message is known
by everything that was said up to it, as in logs of chats. A span is exported when it ends. So an
agent comes after its chats, and repeats their messages, except those of the system.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from tooltrail.importers import events
from tooltrail.importers.blocks import origin_of, parts_of
from tooltrail.importers.members import parsed, spelled, without
from tooltrail.importers.openai_chat import event_of, names_of
from tooltrail.importers.values import Json, list_of, object_of, objects_of, type_name

NAME: Final = "otlp-json"

_NAMES: Final = {
    "arguments": ("gen_ai.tool.call.arguments", "input.value", "tool_arguments", "content"),
    "call_id": ("gen_ai.tool.call.id", "tool_call.id", "tool.id"),
    "inputs": ("gen_ai.input.messages", "llm.input_messages", "gen_ai.prompt"),
    "kind": ("gen_ai.operation.name", "openinference.span.kind"),
    "model": ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name"),
    "outputs": ("gen_ai.output.messages", "llm.output_messages", "gen_ai.completion"),
    "provider": ("gen_ai.provider.name", "gen_ai.system", "llm.provider"),
    "response_id": ("gen_ai.response.id",),
    "result": ("gen_ai.tool.call.result", "output.value", "tool_response", "message"),
    "session": ("gen_ai.conversation.id", "session.id"),
    "system": ("gen_ai.system_instructions",),
    "tool": ("gen_ai.tool.name", "tool.name"),
}
"""The attributes that may hold each thing, the best one first. Those of its events count, too."""

_NUMBERED: Final = re.compile(r"(llm\.\w+put_messages|gen_ai\.prompt|gen_ai\.completion)\.(\d.*)")
"""The name of one member of one message, such as `llm.input_messages.0.message.role`."""

_MOST_PARTS: Final = 16
"""The most parts of such a name; the rest is one part. Longer names would nest without limit."""

_USAGE: Final = ("gen_ai.usage.", "llm.token_count.")
_TOOLS: Final = ("execute_tool", "TOOL")
_CHATS: Final = ("chat", "generate_content", "text_completion", "LLM")
_TEXTS: Final = {"text": "text", "reasoning": "reasoning", "thinking": "reasoning"}
_REASONS: Final = ("exception.message", "error.type", "exception.type")
_ERROR: Final = (2, "STATUS_CODE_ERROR")
_OF_MESSAGE: Final = frozenset({"contents", "message", "parts"})


def recognizes(value: Any) -> bool:
    """Whether a JSON value is an export of spans."""
    return isinstance(object_of(value).get("resourceSpans"), list)


class Reader(events.FileReader):
    """Reads the exports in one file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._sessions: dict[str, str] = {}  # by trace
        self._answers: set[tuple[str, str]] = set()
        # By session and call: what a message asks for; None if the span of the call came first.
        self._asked: defaultdict[str, dict[str, tuple[str, Any] | None]] = defaultdict(dict)

    def read(self, line: events.Line) -> Iterator[events.Event]:
        """The events of the spans in one export."""
        found = (
            _span(span, resource)
            for one in objects_of(line.value, "resourceSpans")
            for resource in (_attributes(object_of(one, "resource")),)
            for scope in objects_of(one, "scopeSpans")
            for span in objects_of(scope, "spans")
        )
        spans = sorted(found, key=itemgetter("end"))
        if not spans:
            what = next(iter(object_of(line.value)), type_name(line.value))
            yield events.Skipped(what, is_known=recognizes(line.value))
        self._sessions |= {one["trace"]: one["session"] for one in spans if one["session"]}
        for span in spans:
            trace: str = span["trace"]
            session = span["session"] or self._sessions.get(trace, trace)
            is_relevant = span["said"] or span["kind"] in (*_TOOLS, *_CHATS)
            if is_relevant and self._is_new(session, span["id"]):
                yield events.Session(session, span["began_at"], environment=span["resource"])
                read = self._call if span["kind"] in _TOOLS else self._messages
                yield from read(session, span)
            else:
                yield events.Skipped("span", is_known=True)

    def _call(self, session: str, span: Json) -> Iterator[events.Event]:
        """A call, which a message may have asked for, and its result."""
        tool, given, began = span["tool"], _spelled(span["arguments"]), span["began_at"]
        asked, what = self._asked[session], (tool, parsed(given))
        same = (one for one, asked_for in asked.items() if asked_for == what)
        call_id = str(span["call_id"] or next(same, span["id"]))
        if asked.pop(call_id, None) is None:
            asked[call_id] = None
        yield events.Call(call_id, tool, given, at=began, session=session)
        output, extras = events.output_of(span["result"]), span["extras"]
        failure, message = events.FAILED if span["has_failed"] else None, span["failure"]
        at, took = span["ended_at"], span["duration_ms"]
        yield events.Result(session, call_id, at, None, output, failure, took, extras, message)

    def _messages(self, session: str, span: Json) -> Iterator[events.Event]:
        """What is new in a conversation: what is after the last recorded answer."""
        said, input_count, is_chat = span["said"], span["input_count"], span["kind"] in _CHATS
        alone = [(session, names_of([one])[0]) for one in said]
        repeated = range(input_count if is_chat else len(said))
        known = max((n for n in repeated if alone[n] in self._answers), default=-1)
        for n, name in enumerate(names_of(said)):
            message, role = said[n], said[n]["role"]
            if (n <= known and role != "system") or not self._is_new(session, name):
                continue
            at, origin = span["began_at"], {"wire_format": NAME}
            if n >= input_count:
                message = {**message, "attributes": span["extras"] or None}
                at, origin = span["ended_at"], span["origin"]
            if role == "assistant":
                self._answers.add(alone[n])
            event = event_of(session, name, at, message, origin)
            asked = event.content if isinstance(event, events.Message) else ()
            calls = [one for one in asked if isinstance(one, events.Call)]
            for position, one in enumerate(calls):
                call_id = str(one.call_id or f"{name}/{position}")
                if self._asked[session].pop(call_id, ()) is not None:
                    self._asked[session][call_id] = (one.tool_name, parsed(one.arguments))
            yield event
        if is_chat and input_count == len(said):
            # Of an answer without content, a message that no model is shown has the tokens.
            at, origin, extras = span["ended_at"], span["origin"], {"attributes": span["extras"]}
            yield events.Message(session, span["id"], at, "tool", None, origin, extras)


def _span(span: Json, resource: Json) -> dict[str, Any]:
    """The things in a span by our names, with the messages in the shape of Chat Completions."""
    attributes = _attributes(span)
    for event in objects_of(span, "events"):
        attributes |= _attributes(event)
    named = {
        place: next((one for one in names if one in attributes), "")
        for place, names in _NAMES.items()
    }
    found = {place: attributes.get(name) for place, name in named.items()}
    system = [{"role": "system", "content": parsed(found["system"])}] if found["system"] else []
    inputs = [said for one in (*system, *_items(found["inputs"])) for said in _chat(one)]
    outputs = [said for one in _items(found["outputs"]) for said in _chat(one)]
    begin, end = (_integer(span.get(f"{one}TimeUnixNano")) or 0 for one in ("start", "end"))
    usage = {name: one for name, one in attributes.items() if name.startswith(_USAGE)}
    status = object_of(span, "status")
    failure = next(filter(None, map(attributes.get, _REASONS)), None)
    has_failed = status.get("code") in _ERROR or failure is not None
    return {
        **found,
        "tool": str(found["tool"] or str(span.get("name")).removeprefix("execute_tool ")),
        "trace": str(span.get("traceId")),
        "id": str(span.get("spanId")),
        "session": str(found["session"] or ""),
        "resource": resource,
        "end": end,
        "began_at": begin / 1e9 or None,
        "ended_at": end / 1e9 or None,
        "duration_ms": (end - begin) / 1e6 if begin else None,
        "failure": str(status.get("message") or failure or "") if has_failed else "",
        "has_failed": has_failed,
        "said": [*inputs, *outputs],
        "input_count": len(inputs),
        "origin": origin_of(NAME, found, usage, "model", "provider", "response_id"),
        "extras": without(attributes, frozenset({*named.values(), *usage})),
    }


def _chat(value: Any) -> Iterator[Json]:
    """A message in the shape of Chat Completions, where each result is a message of its own."""
    outer = object_of(value) or {"content": value}
    message = {**outer, **object_of(outer, "message")}
    content, calls, results = list[Any](), _items(message.get("tool_calls")), list[Json]()
    parts = _items(message.get("parts")) or _items(message.get("contents"))
    for one in (*parts_of(message.get("content")), *parts):
        part = object_of(object_of(one).get("message_content", one))
        kind, text = str(part.get("type")), part.get("content")
        if kind == "tool_call":
            calls.append(part)
        elif kind == "tool_call_response":
            shown = _spelled(part.get("response", part.get("result")))
            results.append({"role": "tool", "tool_call_id": part.get("id"), "content": shown})
        elif kind in _TEXTS and isinstance(text, str):
            content.append({"type": _TEXTS[kind], _TEXTS[kind]: text})
        else:
            content.append(part or one)
    if content or calls or not results:
        role = "assistant" if message.get("role") == "model" else message.get("role")
        said = {"role": role, "content": content, "tool_calls": [*map(_asked, calls)]}
        yield {**without(message, _OF_MESSAGE), **said}
    yield from results


def _asked(one: Any) -> Json:
    call = object_of(object_of(one).get("tool_call", one))
    function = object_of(call.get("function", call))
    given = _spelled(function.get("arguments"))
    return {"id": call.get("id"), "function": {"name": function.get("name"), "arguments": given}}


def _attributes(holder: Json) -> dict[str, Any]:
    """The attributes by their names. Those of numbered messages are put together."""
    found: dict[str, Any] = {}
    for one in objects_of(holder, "attributes"):
        key = str(one.get("key"))
        numbered = _NUMBERED.fullmatch(key)
        path = [numbered[1], *numbered[2].split(".", _MOST_PARTS)] if numbered else [key]
        *above, last = path
        node = found
        for step in above:
            node[step] = object_of(node.get(step))
            node = node[step]
        node[last] = _value(one.get("value"))
    return found


def _value(value: Any) -> Any:
    match value:
        case {"arrayValue": held}:
            return [*map(_value, list_of(held, "values"))]
        case {"kvlistValue": held}:
            return _attributes({"attributes": object_of(held).get("values")})
        case {"intValue": number}:
            return _integer(number)
        case _:
            return next(iter(object_of(value).values()), None)


def _integer(value: Any) -> int | None:
    return int(value) if re.fullmatch(r"-?\d{1,19}", str(value)) else None


def _items(value: Any) -> list[Any]:
    """The items of an array, also if it is spelled as a text or by numbered attributes."""
    value = parsed(value)
    numbered = object_of(value)
    if all(map(str.isdecimal, numbered)):
        return [numbered[one] for one in sorted(sorted(numbered), key=len)] or list_of(value)
    return []


def _spelled(value: Any) -> str:
    return "" if value is None else spelled(value)
