"""ATIF, the Agent Trajectory Interchange Format of Harbor (RFC 0001, versions 1.2 to 1.7).

One JSON document is one run. A step of the agent has its calls, and in `observation` their results
as the model saw them. The format has no place for the complete output. The runs of sub-agents may
stand inside the document; those in other files are sessions without a parent.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from tooltrail.importers.blocks import (
    blocks_of,
    call_block,
    named_texts,
    origin_of,
    others_than_text,
    parts_of,
    role_of,
    spelled,
    text_of,
    without,
)
from tooltrail.importers.events import (
    NOTHING,
    CallFound,
    Event,
    Json,
    Line,
    MessageFound,
    ResultFound,
    SessionFound,
    Skipped,
    list_of,
    object_of,
)
from tooltrail.records.digests import digest_of

NAME: Final = "atif"

_STEPS_OF_ID: Final = 2
"""Steps that make the id of a run that has none: the task and the first answer."""

_KNOWN: Final = frozenset(
    {
        *("message", "metrics", "model_name", "observation", "reasoning_content", "source"),
        *("step_id", "timestamp", "tool_calls"),
    }
)
_RESULT: Final = frozenset({"content", "source_call_id"})


def recognizes(value: Any) -> bool:
    """Whether a JSON value is a trajectory in this format."""
    run = object_of(value)
    return str(run.get("schema_version")).startswith("ATIF") and "steps" in run


class Reader:
    """Reads the trajectory in one file."""

    def events(self, line: Line) -> Iterator[Event]:
        """The events of a run and of the runs inside it."""
        if recognizes(line.value):
            yield from _run(object_of(line.value), None)
        else:
            yield Skipped(type(line.value).__name__, is_known=False)


def _run(run: Json, parent: str | None) -> Iterator[Event]:
    steps, agent = list_of(run.get("steps")), object_of(run.get("agent"))
    ids = named_texts(run, {"session": "session_id", "run": "trajectory_id"})
    session = "/".join(ids.values()) or digest_of(json.dumps(steps[:_STEPS_OF_ID]).encode())
    named = named_texts(agent, {"name": "name", "version": "version"})
    began = object_of(steps[0]).get("timestamp") if steps else None
    yield SessionFound(session, began, agent=" ".join(named.values()) or None, parent=parent)
    for position, value in enumerate(steps):
        step = object_of(value)
        if "source" in step or "message" in step:
            model = step.get("model_name") or agent.get("model_name")
            yield from _step(session, str(position), {**step, "model_name": model})
        else:
            yield Skipped(type(value).__name__, is_known=False)
    for inner in list_of(run.get("subagent_trajectories")):
        if "steps" in object_of(inner):
            yield from _run(object_of(inner), session)


def _step(session: str, name: str, step: Json) -> Iterator[Event]:
    at, is_agent = step.get("timestamp"), step.get("source") == "agent"
    calls = [
        _call(session, name, at, object_of(one), position)
        for position, one in enumerate(list_of(step.get("tool_calls")))
    ]
    thought = step.get("reasoning_content")
    blocks = [
        *([{"type": "reasoning", "text": thought}] if isinstance(thought, str) else []),
        *blocks_of(step.get("message")),
        *map(call_block, calls),
    ]
    role = "assistant" if is_agent else role_of(step.get("source"))
    origin = (
        origin_of(NAME, step, {"model": "model_name"}, step.get("metrics")) if is_agent else NOTHING
    )
    yield MessageFound(session, name, at, role, blocks, origin, without(step, _KNOWN))
    yield from calls
    results = list_of(object_of(step.get("observation")).get("results"))
    for position, one in enumerate(results):
        yield _result(session, f"{name}/{position}", at, object_of(one))


def _call(session: str, name: str, at: Any, call: Json, position: int) -> CallFound:
    call_id, tool = call.get("tool_call_id"), str(call.get("function_name"))
    call_id = call_id if isinstance(call_id, str) else f"{name}/{position}"
    return CallFound(session, call_id, at, tool, spelled(call.get("arguments")), name, position)


def _result(session: str, name: str, at: Any, result: Json) -> Event:
    """The result of a call; a message of the environment if it belongs to no call."""
    call_id, content = result.get("source_call_id"), result.get("content")
    extras = without(result, _RESULT)
    if not isinstance(call_id, str):
        return MessageFound(session, name, at, "user", blocks_of(content), extras=extras)
    if others := others_than_text(parts_of(content)):
        extras["content"] = others
    return ResultFound(session, call_id, at, text_of(content), extras=extras)
