"""Where the canonical result shows each stream of a complete result, and how much of it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from pydantic import JsonValue
from tests.records.support import MARKER, number

from tooltrail.records import (
    ChildAgentOutput,
    CommandBatchOutput,
    CommandOutput,
    FamilyOutput,
    FileMutationOutput,
    FileReadOutput,
    GenericOutput,
    PromotedCommand,
    SearchOutput,
    StreamRecord,
    StructuredOutput,
    TaskOutput,
    WebFetchOutput,
    canonical_json,
)

Json = Mapping[str, Any]

_NOTICE = re.compile(r"\[output incomplete: [^\n]*\]\n\Z")
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")

_STUMPS = ("[output incomplete: ", "[output truncated: ", "[binary output: ")
"""Beginnings of a preview without room for a byte of its stream; they may be cut themselves."""


class Slot(NamedTuple):
    """The members of a canonical result for one stream.

    Attributes:
        text: the preview, or the canonical JSON of a value, or a JSON value that was made smaller.
        truncated: the flag of the stream; None without a flag.
        artifact: index of the artifact; None without an artifact.
        artifacts: the list that the index refers to.
    """

    text: Any
    truncated: bool | None
    artifact: int | None
    artifacts: list[Json]

    @property
    def path(self) -> str | None:
        """The path of the artifact."""
        return None if self.artifact is None else self.artifacts[self.artifact]["path"]


def slots_of(output: FamilyOutput, result: Json) -> dict[str, Slot]:  # noqa: PLR0911  one per family
    """The slot of each stream that the result shows, by role."""
    match output:
        case GenericOutput():
            return _content(result) | _value(result, "structured")
        case StructuredOutput():
            return _value(result, "value")
        case CommandOutput():
            return _printed(result)
        case CommandBatchOutput():
            return dict(_batch(result))
        case FileMutationOutput():
            return dict(_diffs(result))
        case TaskOutput():
            return {"output": _named(result["task"], "output"), "failure": _failure(result["task"])}
        case SearchOutput():
            return {"matches": _named(result, "matches", flag="truncated")}
        case ChildAgentOutput() | FileReadOutput() | PromotedCommand() | WebFetchOutput():
            fields = ("report", "content", "initial_output", "text")
            return {f: _named(result, f) for f in fields if f"{f}_truncated" in result}
        case _:
            return {}


def shown_bytes(stream: StreamRecord, text: Any) -> int:
    """The number of stream bytes in a preview, counted in the stream by the marker's numbers.

    The text must be exactly these bytes, with the marker between them.
    """
    data = stream.head + stream.tail if stream.content is None else stream.content
    if isinstance(text, dict | list):
        return shown_of_value(canonical_json.decode(data), cast("JsonValue", text))
    bodies = [text or ""]
    if stream.loss_reason is not None:
        body = _NOTICE.sub("", bodies[0])
        # The notice adds a newline to an incomplete last line.
        bodies = [body, body.removesuffix("\n")]
    if _spelled(data) in bodies:
        return len(data)
    found = MARKER.search(bodies[0])
    if found is None:
        stumps = (body.startswith(s[: len(body)]) for body in bodies for s in _STUMPS)
        assert any(stumps), f"a preview that is neither whole nor marked: {bodies[0][:80]!r}"
        return 0
    first = _beginning(data, number(found["first"]), found["first_unit"])
    last = _end(data[len(first) :], number(found["last"] or "0"), found["last_unit"])
    separator = "" if not first or first.endswith(b"\n") else "\n"
    assert f"{_spelled(first)}{separator}{found[0]}\n{_spelled(last)}" in bodies
    return len(first) + len(last)


def shown_of_value(value: JsonValue, preview: JsonValue) -> int:
    """The number of bytes of a value's canonical JSON that a smaller value shows.

    Except for the markers, all parts must be parts of the value at the same positions. Each marker
    must have the right count.
    """
    if canonical_json.encode(value) == canonical_json.encode(preview):
        return len(canonical_json.encode(value))
    match value, preview:
        case list(), list():
            marks = [n for n, one in enumerate(preview) if _is_mark(one)]
            hidden = 1 + len(value) - len(preview)
            at = next((n for n in marks if preview[n] == _mark(hidden, "item")), None)
            if at is None:
                assert len(value) == len(preview)
                return 1 + len(value) + sum(map(shown_of_value, value, preview))
            kept = value[:at] + value[at + hidden :]
            parts = preview[:at] + preview[at + 1 :]
            return 1 + len(preview) + sum(map(shown_of_value, kept, parts))
        case dict(), dict():
            names = preview.keys() & value.keys()
            for name in preview.keys() - names:
                assert set(name) == {"\u2026"}
                assert preview[name] == _mark(len(value) - len(names), "member")
            assert len(preview) == len(value) or preview.keys() - names
            around = len(canonical_json.encode(dict.fromkeys(names, 0))) - len(names)
            around += len(preview) - len(names)
            return around + sum(shown_of_value(value[name], preview[name]) for name in names)
        case str(), str():
            found = next(m for m in _MARK.finditer(preview) if _is_both_ends(value, preview, m))
            return len(canonical_json.encode(preview)) - len(found[0])
        case _:
            sized = value if isinstance(value, list | dict) else canonical_json.encode_text(value)
            of_object = "member" if isinstance(value, dict) else "character"
            noun = "item" if isinstance(value, list) else of_object
            assert preview == _mark(len(sized), noun)
            return 0


_MARK = re.compile(r"\[\.\.\. ([\d,]+) \w+ omitted \.\.\.\]")


def _mark(count: int, noun: str) -> str:
    return f"[... {count:,} {noun}{'' if count == 1 else 's'} omitted ...]"


def _is_mark(value: JsonValue) -> bool:
    return isinstance(value, str) and _MARK.fullmatch(value) is not None


def _is_both_ends(text: str, preview: str, mark: re.Match[str]) -> bool:
    head, tail = preview[: mark.start()], preview[mark.end() :]
    is_part = text.startswith(head) and text.endswith(tail)
    return is_part and number(mark[1]) == len(text) - len(head) - len(tail)


def _beginning(data: bytes, amount: int, unit: str) -> bytes:
    if unit == "lines":
        return b"".join(_LINE.findall(data)[:amount])
    return _encoded(data.decode("utf-8", "surrogateescape")[:amount])


def _end(data: bytes, amount: int, unit: str | None) -> bytes:
    if not amount:
        return b""
    if unit == "lines":
        return b"".join(_LINE.findall(data)[-amount:])
    return _encoded(data.decode("utf-8", "surrogateescape")[-amount:])


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _spelled(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _named(fields: Json, name: str, flag: str | None = None, owner: Json | None = None) -> Slot:
    return Slot(
        fields.get(f"{name}_preview"),
        fields[flag or f"{name}_truncated"],
        fields.get(f"{name}_artifact"),
        (owner or fields).get("artifacts", []),
    )


def _content(result: Json) -> dict[str, Slot]:
    artifacts = result.get("artifacts", [])
    return {
        f"content.{n}": Slot(
            item.get("text_preview"), item["truncated"], item.get("artifact"), artifacts
        )
        for n, item in enumerate(result["content"])
    }


def _value(result: Json, name: str) -> dict[str, Slot]:
    text = result.get(f"{name}_preview")
    if text is None:
        text = canonical_json.encode_text(result.get(name))
    truncated = result.get(f"{name}_truncated") or False
    artifact = result.get(f"{name}_artifact")
    return {name: Slot(text, truncated, artifact, result.get("artifacts", []))}


def _printed(result: Json) -> dict[str, Slot]:
    if "combined_output_truncated" in result:
        return {"combined": _named(result, "combined_output")}
    return {name: _named(result, name) for name in ("stdout", "stderr")}


def _batch(result: Json) -> Iterator[tuple[str, Slot]]:
    for item in result["items"]:
        if "result" in item:
            for role, slot in _printed(item["result"]).items():
                yield f"{item['index']}.{role}", slot


def _diffs(result: Json) -> Iterator[tuple[str, Slot]]:
    for n, file in enumerate(result["changed_files"]):
        if "diff_truncated" in file:
            yield f"diff.{n}", _named(file, "diff", owner=result)


def _failure(task: Json) -> Slot:
    index = task.get("failure_artifact")
    return Slot(None, None, index, task.get("artifacts", []))
