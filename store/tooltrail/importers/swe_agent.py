"""SWE-agent: one JSON document for each run, in files `*.traj`.

`history` is what the model and the agent said to each other: an answer has `action`, the command,
and the next message is what the model saw. `trajectory` has one step for each command that ran,
with its whole output (`observation`). A step that the history does not have is a call too.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tooltrail.importers import events
from tooltrail.importers.blocks import session_name, text_of
from tooltrail.importers.members import milliseconds_of, named_texts, names_in, parsed, without
from tooltrail.importers.values import NOTHING, Json, list_of, object_of, objects_of

NAME: Final = "swe-agent"

_TOOL: Final = "bash"

_NO_COMMANDS: Final = names_in("exit_api exit_context exit_cost exit_error exit_format") | {""}
"""Actions that run nothing; with most of them, SWE-agent itself ends a run."""

_TIMED_OUT: Final = re.compile(
    r"\s*(?:EXECUTION TIMED OUT|The command '.*' was cancelled because it took more than)",
    re.DOTALL,
)
"""What SWE-agent says of a command that ran too long."""

_HAS_PLACE: Final = names_in("action content role thought tool_call_ids tool_calls")
"""Members of a message that have a place in our records."""


def recognizes(value: Any) -> bool:
    """Whether a JSON value is a run of SWE-agent."""
    document = object_of(value)
    history = objects_of(value, "history")
    return bool(history) and ("trajectory" in document or "agent" in history[0])


class Reader(events.FileReader):
    """Reads a document. The name of the file is a part of the name of the session."""

    _origin: Json = NOTHING
    _cwd: Any = None
    _waiting: Sequence[tuple[events.Call, Json]] = ()

    def read(self, line: events.Line) -> Iterator[events.Event]:
        """The events of one document."""
        value = object_of(line.value)
        history = objects_of(value, "history")
        steps = [*enumerate(objects_of(value, "trajectory"))]
        if not history and not steps:
            return
        config = object_of(parsed(value.get("replay_config")))
        self._session = session_name(self._path, config, history[:3], steps[:1])
        named = named_texts(object_of(config, "agent", "model"), model="name")
        self._origin = {"wire_format": NAME, **named} if named else NOTHING
        repo, deployment = (object_of(config, "env", one) for one in ("repo", "deployment"))
        about, title = {**value, **repo, **deployment}, object_of(config, "problem_statement")
        where = named_texts(about, "environment", "base_commit", "image", url="github_url")
        yield events.Session(self._session, None, NAME, None, title.get("id"), where)
        for number, message in enumerate(history):
            if message.get("role") != "assistant" or message.get("is_demo"):
                yield from self._message(str(number), message)
                continue
            action, step = message.get("action"), NOTHING
            same = (at for at, (_, one) in enumerate(steps) if one.get("action") == action)
            if isinstance(action, str) and (ran := next(same, None)) is not None:
                yield from self._steps_alone(steps[:ran])
                step, steps = steps[ran][1], steps[ran + 1 :]
            yield from self._answer(str(number), message, step)
        yield from self._steps_alone(steps)
        yield from self._unseen()

    def _message(self, name: str, message: Json) -> Iterator[events.Event]:
        """A message of someone else than the model; the first after a call is its result."""
        content, extras = message.get("content"), without(message, _HAS_PLACE)
        ids = list_of(message, "tool_call_ids")
        is_demo = message.get("is_demo") is True
        for number, (call, step) in enumerate(self._waiting):
            if not is_demo and (not ids or call.call_id in ids):
                self._waiting = [*self._waiting[:number], *self._waiting[number + 1 :]]
                yield self._result(call, step, content, extras)
                return
        yield events.Message(self._session, name, None, message.get("role"), content, extras=extras)

    def _steps_alone(self, steps: list[tuple[int, dict[str, Any]]]) -> Iterator[events.Event]:
        """Steps whose messages are not in the history."""
        for number, step in steps:
            answer = {"content": step.get("response"), "action": step.get("action")}
            yield from self._answer(f"step/{number}", answer, step)

    def _answer(self, name: str, message: Json, step: Json) -> Iterator[events.Event]:
        yield from self._unseen()
        calls, extras = [*_calls(name, message)], without(message, _HAS_PLACE)
        said = (message.get("content"), *calls)
        yield events.Message(self._session, name, None, "assistant", said, self._origin, extras)
        self._waiting = [(one, step if n == 0 else NOTHING) for n, one in enumerate(calls)]

    def _unseen(self) -> Iterator[events.Event]:
        """The results of steps that no message shows."""
        waiting, self._waiting = self._waiting, ()
        for call, step in waiting:
            if step:
                yield self._result(call, step, None, NOTHING)

    def _result(self, call: events.Call, step: Json, receipt: Any, extras: Json) -> events.Result:
        observed, output = step.get("observation"), None
        if isinstance(observed, str):
            command = str(step.get("action"))
            output = events.Output({"combined": observed}, command=command, cwd=self._cwd)
        state = object_of(parsed(step.get("state")))
        self._cwd = state.get("working_dir")
        text = observed if isinstance(observed, str) else text_of(receipt) or ""
        failure = "tool_timed_out" if _TIMED_OUT.match(text) else None
        took = milliseconds_of(step.get("execution_time"), 1000)
        session, extras = self._session, {**extras, **({"state": state} if state else {})}
        return events.Result(session, call.call_id, None, receipt, output, failure, took, extras)


def _calls(name: str, message: Json) -> Iterator[events.Call]:
    action, functions = message.get("action"), objects_of(message, "tool_calls")
    for position, one in enumerate(functions):
        function, call_id = object_of(one, "function"), str(one.get("id") or f"{name}/{position}")
        yield events.Call(call_id, str(function.get("name")), function.get("arguments"), True)
    if not functions and isinstance(action, str) and action.strip() not in _NO_COMMANDS:
        yield events.Call(f"{name}/0", _TOOL, action, True, more={"kind": "custom"})
