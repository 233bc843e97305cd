"""Codex: one JSON line for each event, in `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`.

A `response_item` is what the model and the agent said to each other: calls, their outputs as the
model saw them, messages. An `event_msg` is what happened meanwhile: `exec_command_end` holds the
complete output of a command, `mcp_tool_call_end` and `patch_apply_end` those of other tools. Such
an event stands between its call and the output of the call, and is kept until that output comes. An
event that comes later is kept verbatim, but belongs to no call: a later call may have its id.
`token_count` counts the tokens of the answer before it, and becomes a message that no model is
shown, since the answer is recorded already. Versions before 2025-10 wrote the items without the
wrapper `{timestamp, type, payload}`.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tooltrail.importers import events
from tooltrail.importers.blocks import reasoning_part, text_of
from tooltrail.importers.members import milliseconds_of, named_texts, names_in, without
from tooltrail.importers.values import NOTHING, Json, list_of, object_of

NAME: Final = "codex"

_ENDS: Final = frozenset({"exec_command_end", "mcp_tool_call_end", "patch_apply_end"})
_CALLS: Final = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "tool_search_call": "arguments",
}
"""The member of each kind of call that holds its arguments."""

_COMMANDS: Final = frozenset({"exec_command", "local_shell", "shell", "shell_command"})

_OUTPUTS: Final = names_in(
    "function_call_output custom_tool_call_output local_shell_call_output tool_search_output"
)
_ITEMS: Final = {
    "message": frozenset({"type", "role", "content"}),
    "reasoning": frozenset({"type", "summary", "content", "encrypted_content"}),
    "web_search_call": None,
    "image_generation_call": None,
}
"""The members of other items that have a place in our records; None for items kept whole."""

_STATUS: Final = re.compile(
    r"Exit code: (\d{1,3})\nWall time: "
    r"|(?:Chunk ID: .*\n)?Wall time: .*\nProcess exited with code (\d{1,3})\n"
    r'|\{"output":".*"metadata":\{"exit_code":(\d{1,3}),"duration_seconds":[\d.]+\}\}\Z'
)
"""The exit status in the text for the model: in a heading, or in JSON around the output."""

_OF_CALL: Final = frozenset({"type", "call_id", "name", "namespace", *_CALLS.values()})
_OF_OUTPUT: Final = frozenset({"type", "call_id", "output", "tools"})
_OF_END: Final = frozenset({"type", "call_id", "duration"})
_OF_COMMAND: Final = _OF_END | {"command", "cwd", "stdout", "stderr"}
_OF_SESSION: Final = {
    "agent_version": "cli_version",
    "git_branch": "branch",
    "git_commit": "commit_hash",
    "repository": "repository_url",
}
_USAGE: Final = "last_token_usage"
_STATE: Final = ("compacted", "session_meta", "state", "turn_context")
_REPEATING: Final = names_in(
    "agent_message agent_reasoning context_compacted exec_command_begin error mcp_tool_call_begin "
    "patch_apply_begin task_complete task_started turn_aborted user_message web_search_begin "
    "web_search_end"
)
"""Events that say again what items say, or that are about the agent's own state."""


def recognizes(value: Any) -> bool:
    """Whether a JSON value is a line of Codex, of this or an older version."""
    line = object_of(value)
    is_wrapped = isinstance(line.get("payload"), dict) and "type" in line
    is_bare_head = line.keys() >= {"instructions", "id", "timestamp"}
    return is_wrapped or is_bare_head or line.get("record_type") == "state"


class Reader(events.FileReader):
    """Reads the lines of one file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._origin: Json = {"wire_format": "openai-responses"}
        self._total: Json = NOTHING
        self._ends: defaultdict[str, list[Json]] = defaultdict(list)  # of calls without an output

    def read(self, line: events.Line) -> Iterator[events.Event]:
        """The events of one line."""
        value = object_of(line.value)
        if not value:
            return
        at, kind, item = value.get("timestamp"), value.get("type"), object_of(value, "payload")
        if "payload" not in value:  # before 2025-10
            kind, item = ("session_meta" if "instructions" in value else "response_item"), value
        what = str(item.get("type"))
        if kind == "turn_context":
            self._origin = {"wire_format": "openai-responses", **named_texts(item, "model")}
        if kind == "session_meta" and self._is_new(kind):  # no second one, of a session copied here
            self._session = named_texts(item, "id").get("id", self._session)
            about = {**object_of(item, "git"), **item}
            where = named_texts(about, "cwd", "originator", **_OF_SESSION)
            # The session that started a sub-agent, or of which this one is a copy.
            started = object_of(item, "source", "subagent", "thread_spawn")
            parent = started.get("parent_thread_id") or item.get("forked_from_id") or None
            began = item.get("timestamp")
            yield events.Session(self._session, began, NAME, parent, environment=where)
            yield from self._instructions(item, at)
        elif kind == "event_msg":
            yield from self._event(what, item, at, f"{self._session}/{line.offset}")
        elif kind == "response_item":
            yield from self._item(what, item, at, f"{self._session}/{line.offset}")
        else:
            yield events.Skipped(str(kind), is_known=kind in _STATE)

    def _event(self, what: str, item: Json, at: Any, name: str) -> Iterator[events.Event]:
        call_id = item.get("call_id")
        if what == "token_count":
            yield self._usage(object_of(item, "info"), at, name)
        elif what not in _ENDS or not isinstance(call_id, str):
            yield events.Skipped(f"event {what}", is_known=what in _REPEATING)
        elif NOTHING in (ends := self._ends[call_id]):
            ends[ends.index(NOTHING)] = item
            yield None
        else:
            yield events.Skipped(f"late event {what}", is_known=False)

    def _item(self, what: str, item: Json, at: Any, name: str) -> Iterator[events.Event]:
        call_id = item.get("call_id") or item.get("id")
        if what in _OUTPUTS and isinstance(call_id, str):
            yield self._result(call_id, item, at)
        elif what in _CALLS and isinstance(call_id, str):
            self._ends[call_id].append(NOTHING)
            more = named_texts(item, "namespace")
            if what == "custom_tool_call":
                more["kind"] = "custom"
            tool = str(item.get("name") or what.removesuffix("_call"))
            given, is_command = item.get(_CALLS[what]), tool in _COMMANDS
            call = events.Call(call_id, tool, given, is_command, more=more)
            extras = without(item, _OF_CALL)
            yield events.Message(self._session, name, at, "assistant", call, self._origin, extras)
        elif what in _ITEMS:
            role, known = item.get("role") or "assistant", _ITEMS[what]
            extras, content = {} if known is None else without(item, known), _content(what, item)
            yield events.Message(self._session, name, at, role, content, self._origin, extras)
        else:
            yield events.Skipped(what, is_known=False)

    def _instructions(self, item: Json, at: Any) -> Iterator[events.Event]:
        """The instructions with which the session begins, as a system message."""
        given = item.get("base_instructions", item.get("instructions"))
        text = given if isinstance(given, str) else object_of(given).get("text")
        if isinstance(text, str) and text:
            yield events.Message(self._session, "instructions", at, "system", text)

    def _usage(self, info: Json, at: Any, name: str) -> events.Event:
        """The tokens of one answer. An event with the total of an earlier one repeats that one."""
        total, usage = (object_of(info.get(one)) for one in ("total_token_usage", _USAGE))
        if total == self._total or not usage:
            return events.Skipped("event token_count", is_known=True)
        self._total = total
        origin = {**self._origin, "extras": {"usage": usage}}
        extras = without(info, frozenset({_USAGE}))
        return events.Message(self._session, name, at, "tool", None, origin, extras)

    def _result(self, call_id: str, item: Json, at: Any) -> events.Result:
        end = self._ends[call_id].pop(0) if self._ends[call_id] else NOTHING
        output, has_failed, beside = _surfaces(end)
        receipt, is_refused, rest = _receipt(item.get("output", item.get("tools")))
        said = _STATUS.match(receipt or "")
        lasted, units = object_of(end, "duration"), {"secs": 1000, "nanos": 1e-6}
        times = [milliseconds_of(lasted.get(name), unit_ms) for name, unit_ms in units.items()]
        took = None if None in times else sum(filter(None, times))
        failure = events.FAILED if is_refused or has_failed else None
        extras = {**without(item, _OF_OUTPUT), "output": rest, "event": beside}
        extras = {name: one for name, one in extras.items() if one != {}}
        status = int(said[said.lastindex or 0]) if said else None
        found = events.Result(self._session, call_id, at, receipt, output, failure, took, extras)
        return found._replace(exit_status=status)


def _content(what: str, item: Json) -> Any:
    if what == "message":
        return item.get("content")
    if what == "reasoning":
        texts = [text_of([one]) or "" for one in list_of(item, "summary")]
        extras = {key: item[key] for key in ("encrypted_content", "content") if item.get(key)}
        return reasoning_part("\n\n".join(texts), extras)
    return item


def _receipt(output: Any) -> tuple[str | None, bool, Any]:
    """The text that the model saw, whether it was reported as a failure, and what is beside it."""
    match output:
        case str() | None:
            return output, False, {}
        case {"content": content}:
            others = without(object_of(output), frozenset({"content"}))
            return _receipt(content)[0], others.get("success") is False, others
        case _:
            items, others = list_of(output), without(object_of(output))
            images = [one for one in items if text_of([one]) is None]
            # Without any text, they are the receipt.
            rest = images if 0 < len(images) < len(items) else others
            return text_of(items) or json.dumps(output, ensure_ascii=False), False, rest


def _surfaces(end: Json) -> tuple[events.Output | None, bool, Json]:
    """The output in the end of a call, whether the tool failed, and the members beside the output.

    A command that exits with a status did not fail.
    """
    match end:
        case {"type": "exec_command_end"}:
            output = _command_output(end)
            printed = "".join(output.streams.values())
            both = ("aggregated_output", "formatted_output")
            repeated = {name for name in both if str(end.get(name, "")).strip() in printed}
            if events.exit_status_of(end.get("exit_code")) is not None:
                repeated.add("exit_code")
            return output, False, without(end, _OF_COMMAND | repeated)
        case {"type": "mcp_tool_call_end", "result": {"Ok": result}}:
            has_failed = object_of(result).get("isError") is True
            return events.Output(structured=result), has_failed, without(end, _OF_END | {"result"})
        case {"type": _}:
            texts = {one: end[one] for one in ("stdout", "stderr") if isinstance(end.get(one), str)}
            known = (*texts, "type", "call_id", "turn_id")
            others = {key: one for key, one in end.items() if key not in known}
            streams = {name: one for name, one in texts.items() if one}
            has_failed = "Err" in object_of(end, "result") or end.get("success") is False
            return events.Output(streams, others), has_failed, NOTHING
        case _:
            return None, False, NOTHING


def _command_output(end: Json) -> events.Output:
    texts = named_texts(end, "stdout", "stderr")
    # The streams are empty where the command ran in a terminal.
    combined = named_texts(end, combined="aggregated_output")
    beside = {"stdout": "", "stderr": ""} if texts else {"combined": ""} | combined
    command = end.get("command")
    command = command if isinstance(command, str) else " ".join(map(str, list_of(command)))
    return events.Output(beside | texts, None, command, end.get("cwd"), end.get("exit_code"))
