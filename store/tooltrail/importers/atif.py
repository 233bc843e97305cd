"""ATIF, the Agent Trajectory Interchange Format of Harbor (RFC 0001, versions 1.2 to 1.7).

One JSON document is one run. A step of the agent has its calls, and in `observation` their results
as the model saw them. The format has no place for the complete output. The runs of sub-agents may
stand inside the document; those in other files are sessions without a parent.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from tooltrail.importers import events
from tooltrail.importers.blocks import origin_of, reasoning_part
from tooltrail.importers.members import named_texts, names_in, without
from tooltrail.importers.values import Json, first_of, list_of, object_of, objects_of, type_name
from tooltrail.records.digests import digest_of

NAME: Final = "atif"

_STEPS_OF_ID: Final = 2
"""Steps that make the id of a run that has none: the task and the first answer."""

_KNOWN: Final = names_in(
    "message metrics model_name observation reasoning_content source step_id timestamp tool_calls"
)
_RESULT: Final = frozenset({"content", "source_call_id"})


def recognizes(value: Any) -> bool:
    """Whether a JSON value is a trajectory in this format."""
    run = object_of(value)
    return str(run.get("schema_version")).startswith("ATIF") and "steps" in run


class Reader(events.FileReader):
    """Reads the trajectory in one file."""

    def read(self, line: events.Line) -> Iterator[events.Event]:
        """The events of a run and of the runs inside it."""
        if recognizes(line.value):
            yield from _run(object_of(line.value), None)


def _run(run: Json, parent: str | None) -> Iterator[events.Event]:
    steps, agent = list_of(run, "steps"), object_of(run, "agent")
    ids = named_texts(run, "session_id", "trajectory_id")
    session = "/".join(ids.values()) or digest_of(json.dumps(steps[:_STEPS_OF_ID]).encode())
    named = named_texts(agent, "name", agent_version="version")
    name, began = named.pop("name", None), first_of(steps).get("timestamp")
    yield events.Session(session, began, name, parent, environment=named)
    for position, value in enumerate(steps):
        step = object_of(value)
        if "source" in step or "message" in step:
            model = step.get("model_name") or agent.get("model_name")
            yield from _step(session, str(position), {**step, "model_name": model})
        else:
            yield events.Skipped(type_name(value), is_known=False)
    for inner in objects_of(run, "subagent_trajectories"):
        if "steps" in inner:
            yield from _run(inner, session)


def _call(one: Json) -> events.Call:
    return events.Call(one.get("tool_call_id"), str(one.get("function_name")), one.get("arguments"))


def _step(session: str, name: str, step: Json) -> Iterator[events.Event]:
    at, source = step.get("timestamp"), step.get("source")
    role = "assistant" if source == "agent" else source
    reasoning = reasoning_part(step.get("reasoning_content"))
    content = (reasoning, step.get("message"), *map(_call, objects_of(step, "tool_calls")))
    origin = origin_of(NAME, step, step.get("metrics"), model="model_name")
    yield events.Message(session, name, at, role, content, origin, without(step, _KNOWN))
    for position, one in enumerate(objects_of(step, "observation", "results")):
        call_id, shown = one.get("source_call_id"), one.get("content")
        extras = without(one, _RESULT)
        if isinstance(call_id, str):
            yield events.Result(session, call_id, at, shown, extras=extras)
        else:  # a message of the environment
            yield events.Message(session, f"{name}/{position}", at, "user", shown, extras=extras)
