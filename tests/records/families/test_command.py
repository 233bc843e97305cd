"""Commands: both streams bounded within one budget, and a receipt as a shell would give it."""

import json
from typing import Any

import pytest
from pydantic import ValidationError
from tests.records.support import (
    artifact_path,
    check_golden,
    lossy,
    omitted,
    result_of,
    run,
    run_result,
    whole,
)
from tests.support.cases import each_case
from tests.support.policies import policy_with

from tooltrail.records import CommandOutput, StreamRecord, digest_of

SMALL = policy_with(command={"preview_chars": 1000, "receipt_chars": 3000})


def command(out: bytes | StreamRecord = b"", err: bytes | StreamRecord = b"", **fields: Any) -> (
    CommandOutput
):  # fmt: skip
    ending = {} if {"exit_status", "signal"} & fields.keys() else {"exit_status": 0}
    return CommandOutput(
        stdout=out if isinstance(out, StreamRecord) else whole(out),
        stderr=err if isinstance(err, StreamRecord) else whole(err, "stderr"),
        **ending,
        **fields,
    )


LINES = b"".join(b"line %04d\n" % n for n in range(200))
JSON = (
    b'{"name":"caf\\u00e9","big":1e400,"one":1.0,"one":-0.0,"empty":{},'
    b'"list":[[],[1,{"text":"a, b: [c] {d} \\" \\\\"}],null]}'
)


def test_the_receipt_is_worded_as_in_the_golden_file() -> None:
    check_golden(
        ("command", 2),
        command_success=command(b"src/a.py\nsrc/b.py\n"),
        command_failure=command(b"collected 3 items\n", b"E   assert 1 == 2", exit_status=1),
        command_silent=command(),
        command_signal=command(b"", b"about to die\n", signal=9),
        command_unnamed_signal=command(signal=99),
        command_unknown=command(b"text\n", exit_status=None),
        command_timeout=command(
            b"Starting server on :3000\n", signal=15, timed_out=True, timeout_ms=30_000
        ),
        command_json=command(JSON),
        command_cut=(command(LINES), SMALL),
        command_binary=command(b"ELF\0\1\2\n"),
        command_lossy=command(lossy(b"all that was kept\n", 1234), lossy(b"", 9, "stderr")),
    )


@each_case(
    ("fields", "summary"),
    [
        ({"exit_status": 0}, "command exited with status 0"),
        ({"exit_status": 255}, "command exited with status 255"),
        ({"signal": 11}, "command killed by signal 11 (SIGSEGV)"),
        ({"signal": 128}, "command killed by signal 128"),
        ({"signal": 15, "timed_out": True, "timeout_ms": 1500}, "command timed out after 1.5 s"),
        ({"exit_status": 143, "timed_out": True, "timeout_ms": 0}, "command timed out after 0 s"),
    ],
)
def test_the_summary_says_how_the_command_ended(fields: dict[str, Any], summary: str) -> None:
    projection, _ = run(command(**fields))
    assert projection.canonical.summary_text == summary
    assert projection.canonical.status == "success"


@each_case(
    ("timeout_ms", "seconds"),
    [(1, "0.001"), (100, "0.1"), (1000, "1"), (12_345, "12.345"), (10**9, "1000000")],
)
def test_a_timeout_is_spelled_in_seconds_exactly(timeout_ms: int, seconds: str) -> None:
    _, receipt = run(command(signal=9, timed_out=True, timeout_ms=timeout_ms))
    assert receipt.text == f"Process timed out after {seconds} s\n"


@each_case(
    "fields",
    [
        {"exit_status": 0, "signal": 9},
        {"exit_status": -1},
        {"exit_status": 256},
        {"signal": 0},
        {"signal": 129},
        {"exit_status": 0, "timed_out": True},
        {"exit_status": 0, "timeout_ms": -1},
        {"exit_status": 0, "disposition": "promoted_to_task"},
    ],
)
def test_an_ending_that_cannot_be_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        command(**fields)


def test_the_canonical_result_of_a_silent_command_has_no_spare_field() -> None:
    projection, _ = run(command())
    assert result_of(projection) == {
        "disposition": "completed",
        "exit_status": 0,
        "timed_out": False,
        "stdout_preview": None,
        "stderr_preview": None,
        "stdout_truncated": False,
        "stderr_truncated": False,
        "truncated": False,
    }
    assert projection.artifacts == ()
    assert projection.omissions == ()


def test_a_timeout_that_was_not_reached_is_left_out() -> None:
    assert "timeout_ms" not in run_result(command(timeout_ms=5000))
    reached = command(signal=9, timed_out=True, timeout_ms=5000)
    assert run_result(reached)["timeout_ms"] == 5000


@pytest.mark.parametrize(("size", "published"), [(32_000, False), (32_001, True)])
@pytest.mark.parametrize("side", ["stdout", "stderr"])
def test_a_stream_that_is_not_shown_whole_becomes_an_artifact(
    side: str, size: int, published: bool
) -> None:
    data = b"x" * size
    output = command(data) if side == "stdout" else command(b"", data)
    projection, receipt = run(output)
    result = result_of(projection)
    other = {"stdout": "stderr", "stderr": "stdout"}[side]
    assert result[f"{side}_truncated"] is published
    assert f"{other}_artifact" not in result
    if published:
        path = artifact_path(whole(data, side))
        assert result["artifacts"] == [{"path": path}]
        assert result[f"{side}_artifact"] == 0
        assert receipt.text.endswith(f"\n\nArtifacts:\n{path} ({side})\n")
        assert [role for role, _ in projection.artifacts] == [side]
    else:
        assert "artifacts" not in result
        assert "Artifacts:" not in receipt.text


def test_both_streams_have_their_own_artifact_and_flags() -> None:
    out, err = b"out line\n" * 9000, b"err line\n" * 9000
    projection, receipt = run(command(out, err))
    result = result_of(projection)
    paths = [artifact_path(whole(out)), artifact_path(whole(err))]
    assert (result["stdout_artifact"], result["stderr_artifact"]) == (0, 1)
    assert [entry["path"] for entry in result["artifacts"]] == paths
    assert result["stdout_truncated"] is result["stderr_truncated"] is result["truncated"] is True
    for side, path in zip(("stdout", "stderr"), paths, strict=True):
        assert f"full output: {path}]" in result[f"{side}_preview"]
        assert 15_000 < len(result[f"{side}_preview"]) <= 16_000
    assert receipt.text.endswith(f"\n\nArtifacts:\n{paths[0]} (stdout)\n{paths[1]} (stderr)\n")
    assert len(receipt.text) <= 34_000


def test_the_flag_of_the_whole_is_set_by_stderr_alone() -> None:
    result = run_result(command(b"short\n", b"long line\n" * 9000))
    assert result["stdout_truncated"] is False
    assert result["stderr_truncated"] is result["truncated"] is True


def test_json_is_indented_up_to_the_budget_of_the_previews() -> None:
    for length, indented in ((991, True), (992, False)):
        # Two brackets, two quotes, three newlines and two spaces stand around the text.
        _, receipt = run(command(json.dumps(["x" * length]).encode()), SMALL)
        assert ("stdout:\n[\n" in receipt.text) is indented


@each_case(
    ("line", "preview", "char_count", "raw"),
    [
        ("ls -l", "ls -l", 5, b"ls -l"),
        ("x" * 240, "x" * 240, 240, b"x" * 240),
        ("x" * 241, "x" * 239 + "\u2026", 241, b"x" * 241),
        ("", "", 0, b""),
        ("cat caf\udce9", "cat caf\\xe9", 11, b"cat caf\xe9"),
        ("echo \ud800", "echo \\xed\\xa0\\x80", 17, b"echo \xed\xa0\x80"),
    ],
    ids=["short", "exact", "long", "empty", "undecodable", "lone-surrogate"],
)
def test_the_command_is_repeated_bounded_with_its_digest(
    line: str, preview: str, char_count: int, raw: bytes
) -> None:
    projection, receipt = run(command(command=line, cwd="/srv/app"))
    assert result_of(projection)["command"] == {
        "preview": preview,
        "char_count": char_count,
        "cwd": "/srv/app",
        "digest": digest_of(raw),
    }
    receipt.to_bytes()


@pytest.mark.parametrize(
    ("cwd", "shown"),
    [(None, None), ("", None), ("/caf\udce9", "/caf\\xe9"), ("/\ud800", "/\\xed\\xa0\\x80")],
)
def test_the_folder_of_a_command_is_shown_encodable(cwd: str | None, shown: str | None) -> None:
    assert run_result(command(command="ls", cwd=cwd))["command"]["cwd"] == shown


def test_a_command_that_is_cut_is_said_to_be_cut() -> None:
    projection, _ = run(command(command="x" * 300))
    result = result_of(projection)
    assert result["truncated"] is True
    assert (result["stdout_truncated"], result["stderr_truncated"]) == (False, False)
    (omission,) = projection.omissions
    assert (omission.stage, omission.field, omission.unit) == ("projection", "command", "chars")
    assert (omission.before, omission.after) == (300, 239)


@pytest.mark.parametrize("length", [4096, 4097, 200_000])
def test_a_folder_is_repeated_up_to_the_longest_path_and_counted_beyond(length: int) -> None:
    projection, _ = run(command(command="ls", cwd="/" * length))
    result = result_of(projection)
    missing = omitted(projection.omissions, "cwd", "chars")
    assert result["truncated"] is (missing > 0)
    if length == 4096:
        assert result["command"]["cwd"] == "/" * length
        assert missing == 0
    else:
        assert result["command"]["cwd"] == "/" * 4095 + "\u2026"
        assert missing == length - 4095
    assert len(projection.canonical.to_json()) < 5000


NAMED = {1: "HUP", 2: "INT", 6: "ABRT", 9: "KILL", 11: "SEGV", 15: "TERM"}
UNNAMED = (7, 10, 12, 17)
"""Numbers of signals that differ between systems."""


def test_a_signal_is_named_where_its_number_is_the_same_everywhere() -> None:
    shown = {number: run(command(signal=number))[1].text for number in (*NAMED, *UNNAMED)}
    assert shown == {
        **{n: f"Process killed by signal {n} (SIG{name})\n" for n, name in NAMED.items()},
        **{n: f"Process killed by signal {n}\n" for n in UNNAMED},
    }
