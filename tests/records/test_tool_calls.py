"""A tool call keeps what the model sent, and shows a bounded line of it."""

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.records.support import surfaces
from tests.support.cases import each_case

from tooltrail.records import CompleteOutput, ToolCall, ToolError
from tooltrail.records.argument_previews import ARGUMENTS_PREVIEW_CHARS
from tooltrail.records.plain_text import storable


def test_a_call_of_a_value_has_canonical_arguments() -> None:
    call = ToolCall.of("Bash", {"b": 1.0, "a": [None, 10**60]}, call_id="call_1")
    assert call.arguments_raw == '{"a":[null,1' + "0" * 60 + '],"b":1}'
    assert call.call_id == "call_1"
    assert ToolCall.of("Bash", {"a": [None, 10**60], "b": 1}, call_id="call_1") == call


@each_case(
    ("name", "recorded"),
    [
        ("", "(unnamed)"),
        (" \n", "(unnamed)"),
        ("x" * 257, "x" * 255 + "\u2026"),
        ("x" * 100_000, "x" * 255 + "\u2026"),
        ("half \ud800", "half \\ud800"),
        ("a\0b", "a\\0b"),
    ],
    ids=["empty", "blank", "long", "endless", "surrogate", "nul"],
)
def test_a_name_that_cannot_be_recorded_is_replaced_alike_in_call_and_output(
    name: str, recorded: str
) -> None:
    call = ToolCall(tool_name=name)
    assert call.tool_name == recorded
    output = CompleteOutput.failure(name, ToolError(kind="unknown_tool", message="no such tool"))
    assert output.tool_name == recorded
    projection, _, _ = surfaces(output, "generic")
    assert projection.canonical.tool_name == recorded
    assert ToolCall(tool_name=recorded) == call
    with pytest.raises(ValidationError, match="tool_name"):
        ToolCall.model_validate({"tool_name": None})


@given(st.text(st.characters(), max_size=600))
def test_any_name_is_recorded_bounded_storable_and_once_for_all(name: str) -> None:
    recorded = ToolCall(tool_name=name).tool_name
    assert 1 <= len(recorded) <= 256
    assert storable(recorded) == recorded
    assert ToolCall(tool_name=recorded).tool_name == recorded


@each_case("call_id", [None, "", "../../etc/passwd", "toolu_01/x", "REDACTED"])
def test_any_call_id_is_data(call_id: str | None) -> None:
    assert ToolCall(tool_name="Bash", call_id=call_id).call_id == call_id


def test_the_preview_is_the_title_on_one_line() -> None:
    call = ToolCall(tool_name="Bash", arguments_raw="{}", title="  ls  -l\n| wc\t-l ")
    assert call.arguments_preview == "ls -l | wc -l"


def test_without_a_title_the_preview_is_the_arguments() -> None:
    assert ToolCall(tool_name="Bash", arguments_raw='{"a":\n 1}').arguments_preview == '{"a": 1}'
    assert ToolCall(tool_name="Bash", arguments_raw='{"a":1}', title="").arguments_preview == (
        '{"a":1}'
    )


@each_case(
    ("arguments", "shown"),
    [
        ('{"description": "build", "command": "make \\n all"}', "make all"),
        ('{"command": ["bash", "-lc", "ls -l"]}', "bash -lc 'ls -l'"),
        ('{"file_path": "/a/b.py", "content": "%s"}' % ("x" * 9_000), "/a/b.py"),
        ('{"content": "%s\\"", "command": "make \\n all' % ("x" * 3_000), "make all"),
        ('{"command": "", "other": 1}', '{"command": "", "other": 1}'),
        ('{"input": {"a": 1}}', '{"input": {"a": 1}}'),
        ('{"command": "view", "path": "/a.py"}', "view /a.py"),
        ('{"path": "src", "pattern": "TODO"}', "TODO src"),
        (
            '{"edits": [{"path": "inner"}], "file_path": "/b.py", "text": "%s' % ("y" * 9_000),
            "/b.py",
        ),
        ('["command"]', '["command"]'),
        ('{"command": "mak', "mak"),
    ],
)
def test_the_preview_of_an_object_is_what_the_call_does(arguments: str, shown: str) -> None:
    assert ToolCall(tool_name="Bash", arguments_raw=arguments).arguments_preview == shown


@pytest.mark.parametrize("length", [ARGUMENTS_PREVIEW_CHARS - 1, ARGUMENTS_PREVIEW_CHARS])
def test_a_preview_that_fits_is_whole(length: int) -> None:
    assert ToolCall(tool_name="Bash", title="x" * length).arguments_preview == "x" * length


def test_a_preview_that_does_not_fit_ends_with_an_ellipsis() -> None:
    call = ToolCall(tool_name="Bash", title="x" * (ARGUMENTS_PREVIEW_CHARS + 1))
    assert call.arguments_preview == "x" * (ARGUMENTS_PREVIEW_CHARS - 1) + "\u2026"


@given(st.text(st.characters(), max_size=400))
def test_the_preview_is_bounded_storable_and_on_one_line(raw: str) -> None:
    shown = ToolCall(tool_name="Bash", arguments_raw=raw).arguments_preview
    assert len(shown) <= ARGUMENTS_PREVIEW_CHARS
    assert "\0" not in shown
    assert len(shown.splitlines()) <= 1
    shown.encode()


@given(st.text(st.characters()))
def test_storable_text_can_be_encoded_and_holds_no_nul(text: str) -> None:
    assert b"\0" not in storable(text).encode()
    if "\0" not in text and json.dumps(text, ensure_ascii=False).isprintable():
        assert storable(text) == text


@each_case(
    ("raw", "arguments", "is_readable"),
    [
        ("", {}, True),
        (" \n", {}, True),
        ("{}", {}, True),
        ('{"b":1,"a":[2]}', {"b": 1, "a": [2]}, True),
        ("null", None, True),
        ('"text"', "text", True),
        ("{", None, False),
        ("{}{}", None, False),
        ('{"a":1,"a":2}', None, False),
        ('{"a":NaN}', None, False),
        ('{"a":1e400}', None, False),
    ],
)
def test_arguments_are_read_strictly_and_never_made_up(
    raw: str, arguments: object, is_readable: bool
) -> None:
    call = ToolCall(tool_name="Bash", arguments_raw=raw)
    assert call.arguments == arguments
    assert (call.parse_error is None) is is_readable
    assert call.is_executable is is_readable


@pytest.mark.parametrize("raw", ["", "{", "SELECT 1", '{"a":1}'])
def test_the_arguments_of_a_custom_tool_are_its_text(raw: str) -> None:
    call = ToolCall(tool_name="sql", arguments_raw=raw, kind="custom")
    assert call.arguments == raw
    assert call.parse_error is None
    assert call.is_executable


def test_only_a_whole_call_that_is_ours_is_to_be_run() -> None:
    assert ToolCall(tool_name="Bash", flags=("id_synthesised", "id_repeated")).is_executable
    assert not ToolCall(tool_name="Bash", flags=("incomplete",)).is_executable
    assert not ToolCall(tool_name="Bash", by_provider=True).is_executable


def test_a_changed_copy_reads_its_own_arguments() -> None:
    call = ToolCall(tool_name="Bash", arguments_raw='{"a":1}')
    assert call.arguments == {"a": 1}
    changed = call.model_copy(update={"arguments_raw": '{"a":'})
    assert changed.parse_error is not None
    assert changed.arguments is None
    assert changed.model_copy(update={"kind": "custom"}).arguments == '{"a":'
    assert call.arguments == {"a": 1}


def test_the_place_of_a_call_is_not_negative() -> None:
    with pytest.raises(ValidationError, match="position"):
        ToolCall(tool_name="Bash", position=-1)


def test_a_dump_of_a_call_is_json_and_reads_back() -> None:
    stored = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
    call = ToolCall(tool_name="Bash", message_id=stored, position=2, extras={"a": [None]})
    dumped = json.loads(json.dumps(call.model_dump()))
    assert dumped["message_id"] == str(stored)
    assert ToolCall.model_validate(dumped) == call
    assert ToolCall.model_validate({"tool_name": "Bash"}).message_id is None


def test_two_long_names_of_servers_never_become_one() -> None:
    names = {
        ToolCall(tool_name="t" * 200 + end, namespace="s" * 100).full_name for end in ("a", "b")
    }
    assert len(names) == 2
    assert max(map(len, names)) <= 256
