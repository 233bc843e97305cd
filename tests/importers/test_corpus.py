"""Every real session is imported: the numbers equal those that are counted without the importer."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, cast
from zipfile import ZipFile

import pytest
from tests.importers.sources import CORPUS, calls_in, import_one, opened, stream_of
from tests.support.evidence import check_evidence

from tooltrail.importers import Imported
from tooltrail.store import open_store

pytestmark = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the shared corpus is not beside the repository"
)


def files_of(name: str) -> list[Path]:
    found = (CORPUS / name).rglob("*")
    return sorted(path for path in found if path.suffix in (".eval", ".json", ".jsonl", ".traj"))


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder with the store of all sessions of an agent; each agent is imported once."""

    @cache
    def of(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        for path in files_of(name):
            IMPORTED[path] = import_one(folder, path)
        with opened(folder):
            return folder

    return of


IMPORTED: dict[Path, Imported] = {}
"""What was found in each file that has been imported."""


def values_in(path: Path) -> Iterator[Any]:
    """Every JSON value of a file, also two on a line, without the reader of lines."""
    decoder = json.JSONDecoder()
    if path.suffix == ".eval":
        with ZipFile(path) as archive:
            names = [one for one in archive.namelist() if one.startswith("samples/")]
            yield {"samples": [json.loads(archive.read(one)) for one in names]}
        return
    if path.suffix == ".json":
        yield json.loads(path.read_bytes())
        return
    for line in path.read_bytes().split(b"\n"):
        text, at = line.decode(), 0
        while at < len(text.rstrip()):
            value, at = decoder.raw_decode(text, at)
            yield value


def member(value: Any, *names: str) -> Any:
    """A member of a member of a value; None if there is none."""
    for name in names:
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return value


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    """Every object inside a value."""
    if isinstance(value, dict):
        yield cast("dict[str, Any]", value)
    members = cast("dict[str, Any]", value).values() if isinstance(value, dict) else value
    for one in cast("list[Any]", members) if isinstance(value, dict | list) else ():
        yield from objects_in(one)


def claude_counts(path: Path) -> Counter[str]:
    """Calls and results by their blocks, wherever they stand in a message."""
    counts: Counter[str] = Counter()
    for value in values_in(path):
        at = ("data", "message") if value["type"] == "progress" else ()
        for block in objects_in(member(value, *at, "message", "content")):
            counts["calls"] += block.get("type") == "tool_use"
            counts["results"] += block.get("type") == "tool_result"
    return counts


def codex_counts(path: Path) -> Counter[str]:
    """Calls and outputs by the types of the items."""
    counts: Counter[str] = Counter()
    for value in values_in(path):
        if value["type"] == "response_item":
            kind, has_id = value["payload"]["type"], "call_id" in value["payload"]
            counts["calls"] += has_id and kind.endswith("_call")
            counts["results"] += has_id and kind.endswith("_output")
    return counts


def gemini_calls(path: Path) -> list[dict[str, Any]]:
    document = json.loads(path.read_bytes())
    return [call for one in document["messages"] for call in one.get("toolCalls", [])]


def gemini_counts(path: Path) -> Counter[str]:
    """Calls by their entries, results by the answers in them."""
    calls = gemini_calls(path)
    return Counter(calls=len(calls), results=sum("result" in one for one in calls))


def pi_counts(path: Path) -> Counter[str]:
    """Calls by their blocks, results by the role of their messages."""
    counts: Counter[str] = Counter()
    for value in values_in(path):
        counts["results"] += member(value, "message", "role") == "toolResult"
        if member(value, "message", "role") == "assistant":
            blocks = objects_in(member(value, "message", "content"))
            counts["calls"] += sum(one.get("type") == "toolCall" for one in blocks)
    return counts


def copilot_counts(path: Path) -> Counter[str]:
    """Calls by their starts, results by their ends."""
    counts: Counter[str] = Counter()
    for value in values_in(path):
        counts["calls"] += value["type"] == "tool.execution_start"
        counts["results"] += value["type"] == "tool.execution_complete"
    return counts


def opencode_counts(path: Path) -> Counter[str]:
    """Calls by their ids, results by their texts, wherever they stand."""
    counts: Counter[str] = Counter()
    for value in objects_in(json.loads(path.read_bytes())["messages"]):
        counts["calls"] += "callID" in value
        counts["results"] += value.get("status") in ("completed", "error") and "input" in value
    return counts


def mini_swe_commands(path: Path) -> Iterator[tuple[int, str]]:
    """The number of each answer with exactly one command, and the text of the next message."""
    document: Any = json.loads(path.read_bytes())
    messages = cast("Any", document if isinstance(document, list) else document["messages"])
    for number, (one, following) in enumerate(pairwise(messages)):
        marks = ("```bash\n", "```mswea_bash_command\n")
        if one["role"] == "assistant" and sum(map(one["content"].count, marks)) == 1:
            yield number, following["content"]


def mini_swe_counts(path: Path) -> Counter[str]:
    """Calls and results by the commands in the texts of the model."""
    found = len([*mini_swe_commands(path)])
    return Counter(calls=found, results=found)


def swe_agent_counts(path: Path) -> Counter[str]:
    """Calls by the steps; in a document without steps, by the calls of tools."""
    document = json.loads(path.read_bytes())
    named = [one for one in objects_in(document["history"]) if "tool_call_ids" in one]
    found = len(document.get("trajectory", named))
    return Counter(calls=found, results=found)


def chat_counts(path: Path) -> Counter[str]:
    """Calls and results by the members of messages, wherever the messages stand."""
    counts: Counter[str] = Counter()
    for value in values_in(path):
        # The answer as its provider spelled it; `response` has the same calls.
        raw = [*objects_in(member(value, "raw_response"))]
        for one in objects_in(value):
            if "role" in one and one not in raw:
                counts["calls"] += len(one.get("tool_calls") or [])
                counts["results"] += one["role"] == "tool"
    return counts


def inspect_counts(path: Path) -> Counter[str]:
    """Calls by the members of messages, results also by their events; one file is a chat log."""
    counts: Counter[str] = Counter()
    for value in values_in(path):
        for sample in value.get("samples") or [{"messages": value.get("traj")}]:
            shown = [one["tool_call_id"] for one in sample["messages"] if one["role"] == "tool"]
            events = [one for one in sample.get("events", ()) if one["event"] == "tool"]
            counts["calls"] += sum(len(one.get("tool_calls") or []) for one in sample["messages"])
            counts["results"] += len(shown) + sum(one["id"] not in shown for one in events)
    return counts


def openhands_counts(path: Path) -> Counter[str]:
    """Calls and results by the types of the events."""
    said = ("change_agent_state", "message", "recall", "system")
    counts: Counter[str] = Counter()
    for value in values_in(path):
        for one in member(value, "history") or value:
            counts["calls"] += one.get("action", "message") not in said
            # Newer events name the model's call, or have an id; older ones have neither.
            counts["results"] += "observation" in one and (
                "tool_call_metadata" in one or "id" not in one
            )
    return counts


REPEATED = {"openai_chat": 31}
"""Calls that several files repeat, since each logs one request of the same conversation."""


@pytest.mark.parametrize(
    ("name", "count", "calls"),
    [
        ("claude_code", claude_counts, 558),
        ("codex", codex_counts, 750),
        ("copilot_cli", copilot_counts, 129),
        ("gemini_cli", gemini_counts, 61),
        ("pi", pi_counts, 585),
        ("mini_swe_agent", mini_swe_counts, 458),
        ("opencode", opencode_counts, 161),
        ("swe_agent_traj", swe_agent_counts, 232),
        ("inspect", inspect_counts, 153),
        ("openai_chat", chat_counts, 1205),
        ("openhands", openhands_counts, 142),
    ],
)
def test_every_call_and_result_is_imported(
    imported: Callable[[str], Path], name: str, count: Any, calls: int
) -> None:
    folder = imported(name)
    total: Counter[str] = Counter()
    for path in files_of(name):
        counted, found = count(path), IMPORTED[path].counts
        assert IMPORTED[path].damaged == ()
        assert found["calls"] == counted["calls"], path
        assert found["results"] + found["unpaired_results"] == counted["results"], path
        assert not [one for one in found if one.startswith("unknown")]
        total.update(found)
    assert total["calls"] == calls
    with open_store(folder / "tooltrail.db") as store:
        check_evidence(store, is_complete=False)
        status = store.reader.count_invocations()
    assert status == calls - REPEATED.get(name, 0)


def test_the_output_of_each_command_of_claude_code_is_the_same_bytes(
    imported: Callable[[str], Path],
) -> None:
    expected: Counter[tuple[bytes, bytes, str]] = Counter()
    for path in files_of("claude_code"):
        for value in values_in(path):
            returned: Any = value.get("toolUseResult")
            if isinstance(returned, dict) and {"stdout", "stderr"} <= {*cast("Any", returned)}:
                returned = cast("dict[str, str]", returned)
                (block,) = value["message"]["content"]
                streams = [returned[name].encode() for name in ("stdout", "stderr")]
                expected[streams[0], streams[1], block["content"]] += 1
    with opened(imported("claude_code")) as reader:
        found: Counter[tuple[bytes, bytes, str]] = Counter()
        for call in calls_in(reader):
            stdout, stderr = call.stream("stdout"), call.stream("stderr")
            if stdout is not None and stderr is not None:
                assert call.receipt is not None
                with reader.open_stream(stdout) as one, reader.open_stream(stderr) as other:
                    found[one.read(), other.read(), call.receipt.text] += 1
    assert found == expected
    assert found.total() > 180


Said = tuple[dict[str, tuple[str, int]], dict[str, str], dict[str, int]]


def what_codex_says_of_its_commands() -> Said:
    """The output and status, the text for the model, and the status that it states, of each."""
    ends: dict[str, tuple[str, int]] = {}
    receipts: dict[str, str] = {}
    said: dict[str, int] = {}
    for path in files_of("codex"):
        for item in (value["payload"] for value in values_in(path)):
            if item.get("type") == "exec_command_end":
                ends[item["call_id"]] = (item["aggregated_output"], item["exit_code"])
            if item.get("type") == "function_call_output":
                receipts[item["call_id"]] = item["output"]
            if str(item.get("type")).endswith("_call_output"):
                # What only the text for the model says.
                heading = item["output"].partition("\nOutput:\n")[0]
                words = heading.replace('"exit_code":', "exit code ").replace(":", "").lower()
                if found := re.search(r"(?:exit|exited with) code (\d+)", words):
                    said[item["call_id"]] = int(found[1])
    return ends, receipts, said


def test_each_command_of_codex_has_the_output_the_receipt_and_the_status_of_its_lines(
    imported: Callable[[str], Path],
) -> None:
    ends, receipts, said = what_codex_says_of_its_commands()
    assert sum(map(bool, said.values())) > 20
    cut = 0
    with opened(imported("codex")) as reader:
        for call in calls_in(reader):
            name, summary = call.summary.call_id or "", call.summary
            if name in receipts:
                assert call.receipt is not None
                assert call.receipt.text == receipts[name]
            if call.stream("combined") is not None:
                output = stream_of(reader, call, "combined").decode()
                assert (output, summary.exit_status) == ends.pop(name)
                is_cut = "chars truncated…" in output
                assert is_cut == bool(summary.lost_size)
                cut += is_cut
            if summary.state == "success":
                assert (summary.exit_status or 0) == said.pop(name, summary.exit_status or 0)
                status = summary.exit_status
                assert not status or summary.outcome == f"exit {status}"
    assert (ends, said, cut) == ({}, {}, 8)


def test_the_tokens_of_each_session_of_codex_are_those_that_its_last_event_totals(
    imported: Callable[[str], Path],
) -> None:
    expected: list[Counter[str]] = []
    for path in files_of("codex"):
        totals = [member(one, "payload", "info", "total_token_usage") for one in values_in(path)]
        expected.append(Counter([one for one in totals if one][-1]))
    found: list[Counter[str]] = []
    with opened(imported("codex")) as reader:
        for session in reader.sessions():
            used: Counter[str] = Counter()
            for message in reader.conversation(session.id)[1]:
                document: Any = json.loads(message.document or b"{}")
                used.update(member(document, "origin", "extras", "usage") or {})
            found.append(used)
    assert all(one in expected for one in found)
    assert sum(one["total_tokens"] for one in found) == 40_530_499


def gemini_receipts(path: Path) -> Iterator[tuple[str, str]]:
    """The answers of the functions."""
    for call in gemini_calls(path):
        (part,) = call["result"]
        (text,) = part["functionResponse"]["response"].values()
        yield call["id"], text


def pi_receipts(path: Path) -> Iterator[tuple[str, str]]:
    """The id of each call with a result, and the text that the model saw."""
    for value in values_in(path):
        if member(value, "message", "role") == "toolResult":
            message = value["message"]
            yield message["toolCallId"], "\n".join(one["text"] for one in message["content"])


def copilot_receipts(path: Path) -> Iterator[tuple[str, str]]:
    """The texts of the calls that did not fail; those of the others are not in the file."""
    for value in values_in(path):
        text = member(value, "data", "result", "content")
        if value["type"] == "tool.execution_complete" and text is not None:
            yield value["data"]["toolCallId"], text


def opencode_receipts(path: Path) -> Iterator[tuple[str, str]]:
    """The id of each call with a result, and the text that the model saw."""
    for value in objects_in(json.loads(path.read_bytes())["messages"]):
        if "callID" in value:
            yield value["callID"], value["state"].get("output", value["state"].get("error"))


def mini_swe_receipts(path: Path) -> Iterator[tuple[str, str]]:
    """The place of each command in its document, and the text that the model saw."""
    for number, text in mini_swe_commands(path):
        yield f"{number}/0", text


def swe_agent_receipts(path: Path) -> Iterator[tuple[str, str]]:
    """The id of each call that a message follows, or its place, and that message."""
    history = json.loads(path.read_bytes())["history"]
    for number, (one, following) in enumerate(pairwise(history)):
        if one["role"] == "assistant":
            (call_id,) = following.get("tool_call_ids") or [f"{number}/0"]
            yield call_id, following["content"]


def chat_receipts(value: Any) -> Iterator[tuple[str, str]]:
    """The results with the ids of their calls, in the shape of Chat Completions."""
    for one in objects_in(value):
        if one.get("role") == "tool":
            content: Any = one["content"]
            texts = [part["text"] for part in objects_in(content)] or [content]
            yield one["tool_call_id"], "\n".join(texts)


def inspect_receipts(value: Any) -> Iterator[tuple[str, str]]:
    """The results with the ids of their calls, and errors as OpenAI was sent them."""
    for sample in member(value, "samples") or [{"messages": member(value, "traj")}]:
        asked: set[str] = set()
        for one in sample["messages"]:
            calls: list[Any] = one.get("tool_calls") or []
            asked.update(call["id"] for call in calls)
            if one.get("tool_call_id") in asked:
                shown = f"Error: {one['error']['message']}" if one.get("error") else one["content"]
                yield one["tool_call_id"], shown


def openhands_receipts(value: Any) -> Iterator[tuple[str, str]]:
    """The texts of the observations, except those of commands, with the ids of their calls."""
    for n, one in enumerate(member(value, "history") or value):
        call_id = member(one, "tool_call_metadata", "tool_call_id") or f"event-{n - 1}"
        is_of_call = "tool_call_metadata" in one or "id" not in one
        if one.get("observation", "run") != "run" and is_of_call:
            yield call_id, one["content"]


@pytest.mark.parametrize(
    ("name", "receipts"),
    [
        ("copilot_cli", copilot_receipts),
        ("gemini_cli", gemini_receipts),
        ("pi", pi_receipts),
        ("mini_swe_agent", mini_swe_receipts),
        ("opencode", opencode_receipts),
        ("swe_agent_traj", swe_agent_receipts),
    ],
)
def test_every_receipt_is_the_text_of_the_source(
    imported: Callable[[str], Path], name: str, receipts: Any
) -> None:
    expected: Counter[tuple[str, str]] = Counter()
    for path in files_of(name):
        expected.update(receipts(path))
    with opened(imported(name)) as reader:
        found = Counter(
            (call.summary.call_id, call.receipt.text) for call in calls_in(reader) if call.receipt
        )
    assert found == expected


def test_every_output_of_swe_agent_is_that_of_its_step(imported: Callable[[str], Path]) -> None:
    expected: Counter[str] = Counter()
    for path in files_of("swe_agent_traj"):
        steps = json.loads(path.read_bytes()).get("trajectory", [])
        expected.update(one["observation"] for one in steps)
    with opened(imported("swe_agent_traj")) as reader:
        found = Counter(
            stream_of(reader, call, "combined").decode()
            for call in calls_in(reader)
            if call.stream("combined") is not None
        )
    assert found == expected


@pytest.mark.parametrize(
    ("name", "receipts"),
    [
        ("inspect", inspect_receipts),
        ("openai_chat", chat_receipts),
        ("openhands", openhands_receipts),
    ],
)
def test_every_receipt_is_one_of_the_texts_of_the_source(
    imported: Callable[[str], Path], name: str, receipts: Any
) -> None:
    expected: set[tuple[str, str]] = set()
    for path in files_of(name):
        for value in values_in(path):
            expected.update(receipts(value))
    with opened(imported(name)) as reader:
        found = {(one.summary.call_id, one.receipt.text) for one in calls_in(reader) if one.receipt}
    assert found == expected
