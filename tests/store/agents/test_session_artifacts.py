"""`artifact:read` and `artifact:grep` in a real store: the agent's own long outputs, in parts."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.agents.calling import error_of, output_of, result_of, text_of
from tests.support.agents.scenarios import GOOD, example, run_scripted
from tests.support.agents.spelled_answers import Call, asks
from tests.support.evidence import check_evidence

from tooltrail.agents import AgentTool, SessionArtifacts, searching
from tooltrail.agents.session_artifacts import MAX_SLICE
from tooltrail.artifacts.paths import artifact_path
from tooltrail.records import (
    CommandOutput,
    CompleteOutput,
    FileReadOutput,
    LineRange,
    SearchOutput,
    StreamRecord,
    ToolCall,
    digest_of,
)
from tooltrail.store import Session, Store
from tooltrail.workspace import workspace_tools

LINES = [f"{number:06} {'a needle' if number % 5_000 == 77 else 'hay'}" for number in range(30_000)]
LONG = "".join(f"{line}\n" for line in LINES).encode()
PATH = artifact_path(digest_of(LONG))
OTHER = LONG[::-1]
ASKED: dict[str, dict[str, Any]] = {
    "artifact:read": {"end_line": 5_000},
    "artifact:grep": {"pattern": "hay"},
}
"""A call of each tool, but for the path."""


def printed(session: Session, output: bytes) -> str:
    """Record a command that printed so much that it is an artifact; what the model was shown."""
    call = session.start(ToolCall.of("shell:run", {"command": "x"}), family="command")
    stream = StreamRecord.from_bytes("combined", output)
    result = CommandOutput(command="x", exit_status=0, combined=stream)
    return call.finish(CompleteOutput.success("shell:run", result)).receipt.text


@pytest.fixture
def tools(store: Store, tmp_path: Path) -> dict[str, AgentTool]:
    session = store.open_session()
    assert PATH in printed(session, LONG)
    return workspace_tools(tmp_path, artifacts=SessionArtifacts(store, session.id))


def read(tools: dict[str, AgentTool], **arguments: Any) -> FileReadOutput:
    return result_of(FileReadOutput, tools["artifact:read"], **{"path": PATH, **arguments})


def refusal(tools: dict[str, AgentTool], name: str = "artifact:read", **arguments: Any) -> str:
    return error_of(tools[name], **{"path": PATH, **arguments}).message


def grep(tools: dict[str, AgentTool], pattern: str, **arguments: Any) -> SearchOutput:
    return result_of(SearchOutput, tools["artifact:grep"], pattern=pattern, path=PATH, **arguments)


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ({"start_line": 1, "end_line": 1}, 1, 1),
        ({"start_line": 9_999, "end_line": 10_002}, 9_999, 10_002),
        ({"end_line": 2}, 1, 2),
        ({"start_line": 29_999}, 29_999, 30_000),
        ({"start_line": 30_000, "end_line": 40_000}, 30_000, 30_000),
    ],
)
def test_some_lines_are_read_and_the_range_says_which(
    tools: dict[str, AgentTool], asked: dict[str, int], first: int, last: int
) -> None:
    found = read(tools, **asked)
    assert found.content.content is not None
    assert found.content.content.decode().splitlines() == LINES[first - 1 : last]
    assert found.line_range == LineRange(start=first, end=last)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"offset": 100, "length": 50}, LONG[100:150]),
        ({"length": 7}, LONG[:7]),
        ({"offset": len(LONG) - 5}, LONG[-5:]),
        ({"offset": len(LONG) - 5, "length": 100}, LONG[-5:]),
        ({"length": MAX_SLICE}, LONG[:MAX_SLICE]),
    ],
)
def test_some_bytes_are_read(
    tools: dict[str, AgentTool], asked: dict[str, int], expected: bytes
) -> None:
    found = read(tools, **asked)
    assert (found.content.content, found.line_range) == (expected, None)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"offset": 100.0, "length": 50.0}, LONG[100:150]),
        ({"start_line": 1.0, "end_line": 1.0}, f"{LINES[0]}\n".encode()),
    ],
)
def test_an_integer_may_be_written_as_a_decimal_number(
    tools: dict[str, AgentTool], asked: dict[str, float], expected: bytes
) -> None:
    tool = tools["artifact:read"]
    found = tool.handler(tool.parse({"path": PATH, **asked}))
    assert isinstance(found, FileReadOutput)
    assert found.content.content == expected


def test_a_short_artifact_is_read_whole(store: Store, tmp_path: Path) -> None:
    with store.open_session() as session:
        short = b"\x00\xff\n" * 10_000
        printed(session, short)
        tools = workspace_tools(tmp_path, artifacts=SessionArtifacts(store, session.id))
        found = read(tools, path=artifact_path(digest_of(short)))
    assert found.content.content == short


def test_a_slice_is_bounded_and_lines_that_are_not_there_are_an_error(
    tools: dict[str, AgentTool],
) -> None:
    shape = f"{PATH}, which has 30,000 lines and {len(LONG):,} bytes"
    too_large = f"more than 256 KiB at once; read fewer lines or bytes of {shape}, or search it"
    assert MAX_SLICE == 256 << 10 < len(LONG)
    assert too_large in refusal(tools, length=MAX_SLICE + 1)
    assert too_large in refusal(tools)
    assert too_large in refusal(tools, start_line=2)
    assert f"there is no byte {len(LONG)} in {shape}" in refusal(tools, offset=len(LONG))
    assert "there are no lines 30001 to 30000" in refusal(tools, start_line=30_001)
    assert "there are no lines 5 to 4" in refusal(tools, start_line=5, end_line=4)
    assert "lines and bytes exclude each other" in refusal(tools, start_line=1, length=1)


def test_lines_that_a_pattern_fits_are_found_and_counted(tools: dict[str, AgentTool]) -> None:
    expected = "".join(f"{number + 1}:{LINES[number]}\n" for number in range(77, 30_000, 5_000))
    for arguments in ({}, {"literal": True}):
        found = grep(tools, "a needle", **arguments)
        assert (found.match_count, found.returned) == (6, 6)
        assert text_of(found.matches) == expected
    assert text_of(grep(tools, r"^0100\d0 HAY", ignore_case=True, max_matches=2).matches) == (
        f"10001:{LINES[10_000]}\n10011:{LINES[10_010]}\n"
    )
    found = grep(tools, "hay")
    assert (found.match_count, found.returned) == (29_994, 200)
    assert grep(tools, "h.a.y", literal=True).match_count == 0


def test_a_search_that_cannot_be_done_is_an_error(tools: dict[str, AgentTool]) -> None:
    message = refusal(tools, "artifact:grep", pattern="(")
    assert "the pattern is not a regular expression" in message
    # No file can be searched by it.
    message = refusal(tools, "artifact:grep", pattern="x", root="/etc")
    assert "does not match the tool schema" in message


def test_a_pattern_that_takes_for_ever_is_ended(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "TIMEOUT_MS", 1_000)
    slow = b"a" * 50 + b"b\n" + LONG
    with store.open_session() as session:
        printed(session, slow)
        tools = workspace_tools(tmp_path, artifacts=SessionArtifacts(store, session.id))
        path = artifact_path(digest_of(slow))
        message = refusal(tools, "artifact:grep", pattern="^(a+)+$", path=path)
    assert "the search took longer than 1 seconds" in message


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("path", [artifact_path(digest_of(OTHER)), PATH[:-1], "../a.py", "/etc/x"])
def test_what_is_no_artifact_of_the_session_is_refused(
    store: Store, tools: dict[str, AgentTool], name: str, path: str
) -> None:
    with store.open_session() as other:
        assert artifact_path(digest_of(OTHER)) in printed(other, OTHER)
    message = refusal(tools, name, **ASKED[name], path=path)
    assert f"this session has no stored artifact {path};" in message


@pytest.mark.parametrize("name", ASKED)
def test_an_artifact_whose_bytes_were_altered_is_an_error(
    store: Store, tools: dict[str, AgentTool], tmp_path: Path, name: str
) -> None:
    store.ingest()
    [file] = tmp_path.rglob(PATH.rpartition("/")[2])
    stored = bytearray(file.read_bytes())
    stored[len(stored) // 4] ^= 1
    file.chmod(0o600)
    file.write_bytes(stored)
    message = refusal(tools, name, **ASKED[name])
    assert "DamageError" in message
    assert PATH in message


@pytest.mark.parametrize("name", ASKED)
def test_an_artifact_that_waits_for_the_sink_is_refused_until_it_is_stored(
    store: Store, tmp_path: Path, name: str
) -> None:
    sink = next(tmp_path.rglob("artifacts"))
    sink.rename(tmp_path / "unmounted")
    with store.open_session() as session:
        printed(session, LONG)
        tools = workspace_tools(tmp_path, artifacts=SessionArtifacts(store, session.id))
        assert "may still wait for the sink" in refusal(tools, name, **ASKED[name])
        (tmp_path / "unmounted").rename(sink)
        store.ingest()
        assert output_of(tools[name], {"path": PATH, **ASKED[name]}).error is None


def test_an_agent_reads_and_greps_what_its_own_command_printed(
    store: Store, tmp_path: Path
) -> None:
    with store.open_session() as other:
        printed(other, OTHER)
    (tmp_path / "long").write_bytes(LONG)
    path, tool_names = PATH, ("shell:run", "artifact:read", "artifact:grep")
    config = example("reviewer").model_copy(update={"tools": tool_names})
    script = [
        asks(Call("shell_run", {"command": "cat long"}, "c1")),
        asks(
            Call("artifact_read", {"path": path, "start_line": 5_000, "end_line": 5_001}, "c2"),
            Call("artifact_read", {"path": path, "offset": 7, "length": 3}, "c3"),
            Call("artifact_grep", {"path": path, "pattern": "needle", "max_matches": 1}, "c4"),
            Call("artifact_read", {"path": artifact_path(digest_of(OTHER))}, "c5"),
        ),
        asks(Call("submit_result", GOOD["reviewer"], "c6")),
    ]
    ran = run_scripted(store, config, "openai", script, root=tmp_path)
    assert ran.run.outcome == "submitted"
    _, _, calls = store.reader.conversation(ran.run.run_id)
    receipts = [call.receipt.text if call.receipt is not None else "" for call in calls]
    assert path in receipts[0]
    assert receipts[1] == f"Lines 5000-5001 of {path}\n{LINES[4_999]}\n{LINES[5_000]}\n"
    assert receipts[2].strip() == "hay"
    assert receipts[3].splitlines() == ["Found 6 matches, 1 returned", f"78:{LINES[77]}"]
    assert "this session has no stored artifact" in receipts[4]
    assert [call.summary.state for call in calls] == [*["success"] * 4, "error", "success"]
    shown = [one["content"] for one in ran.bodies[-1]["messages"] if one["role"] == "tool"]
    assert shown[:4] == receipts[:4]
    assert receipts[4] in shown[4]
    check_evidence(store)


def test_an_agent_whose_configuration_does_not_name_the_tools_cannot_call_them(
    store: Store, tmp_path: Path
) -> None:
    script = [
        asks(Call("artifact_read", {"path": PATH}, "c1")),
        asks(Call("submit_result", GOOD["reviewer"], "c2")),
    ]
    ran = run_scripted(store, example("reviewer"), "openai", script, root=tmp_path)
    assert ran.run.outcome == "submitted"
    _, _, (call, _) = store.reader.conversation(ran.run.run_id)
    assert call.summary.error_kind == "tool_not_exposed"
