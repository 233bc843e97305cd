"""Every failure has a kind, a sentence, details, a hint, and says whether to try again."""

import asyncio
import errno
import sys
from typing import cast

import pytest
from pydantic import JsonValue
from tests.records.failing import SECRET, details_of
from tests.records.support import surfaces
from tests.support.cases import each_case

from tooltrail.records import (
    CompleteOutput,
    ToolError,
    UnavailableError,
    error_of_cancellation,
    error_of_exception,
    error_of_interruption,
    error_of_invalid_arguments,
    error_of_refusal,
    error_of_timeout,
    error_of_truncated_call,
    error_of_unexposed_tool,
    error_of_unknown_tool,
)
from tooltrail.records.budgets import MAX_MESSAGE_CHARS

INTERRUPTED = "the call was interrupted before it was done"
CANCELLED = "the call was cancelled before it was done"
ENDING = "the tool tried to end the program"
FAILED = "tool_execution_failed"


def in_words(error: ToolError) -> tuple[str, str, JsonValue, str | None, bool]:
    return error.kind, error.message, error.details, error.recovery_hint, error.retryable


@each_case(
    ("error", "kind", "message", "retryable"),
    [
        (ValueError("no such column"), FAILED, "ValueError: no such column", False),
        (KeyError("name"), FAILED, "KeyError: 'name'", False),
        (ValueError(), FAILED, "ValueError", False),
        (ValueError(" \n"), FAILED, "ValueError", False),
        (PermissionError(13, "denied"), FAILED, "PermissionError: [Errno 13] denied", False),
        (TimeoutError("read"), FAILED, "TimeoutError: read", True),
        (ConnectionResetError("by peer"), FAILED, "ConnectionResetError: by peer", True),
        (
            UnavailableError("locked"),
            FAILED,
            "tooltrail.records.errors.UnavailableError: locked",
            True,
        ),
        (
            OSError(errno.ENOSPC, "full"),
            "low_disk_space",
            f"OSError: [Errno {errno.ENOSPC}] full",
            True,
        ),
        (
            OSError(errno.EDQUOT, "full"),
            "low_disk_space",
            f"OSError: [Errno {errno.EDQUOT}] full",
            True,
        ),
        (OSError([], "odd"), FAILED, "OSError: [Errno []] odd", False),
        (SystemExit(3), FAILED, f"{ENDING} (SystemExit: 3)", False),
        (SystemExit(), FAILED, f"{ENDING} (SystemExit)", False),
        (KeyboardInterrupt(), "interrupted", INTERRUPTED, True),
        (GeneratorExit(), "interrupted", INTERRUPTED, True),
        (asyncio.CancelledError(), "cancelled", CANCELLED, False),
    ],
)
def test_an_exception_has_the_kind_that_its_type_says_beyond_doubt(
    error: BaseException, kind: str, message: str, retryable: bool
) -> None:
    told = error_of_exception(error)
    assert (told.kind, told.message, told.retryable) == (kind, message, retryable)
    assert told.recovery_hint


@each_case(
    ("error", "state"),
    [
        (PermissionError("no"), "error"),
        (SystemExit(1), "error"),
        (KeyboardInterrupt(), "interrupted"),
        (asyncio.CancelledError(), "cancelled"),
        (BaseExceptionGroup("", [ValueError(), asyncio.CancelledError()]), "cancelled"),
        (BaseExceptionGroup("", [ValueError(), SystemExit()]), "error"),
    ],
)
def test_an_exception_decides_the_state_of_its_invocation(error: BaseException, state: str) -> None:
    assert CompleteOutput.failure("Tool", error_of_exception(error)).final_state == state


def test_why_a_task_was_cancelled_or_what_interrupted_it_is_told() -> None:
    assert error_of_exception(asyncio.CancelledError("user left")).details == {
        "reason": "user left",
        "exception": "asyncio.exceptions.CancelledError",
    }
    assert error_of_exception(KeyboardInterrupt()).details == {
        "reason": "KeyboardInterrupt",
        "exception": "KeyboardInterrupt",
    }


@pytest.mark.parametrize(
    ("control", "reason"),
    [
        (asyncio.CancelledError(), {}),
        (KeyboardInterrupt("ctrl-c"), {"reason": "KeyboardInterrupt: ctrl-c"}),
    ],
)
def test_what_was_raised_together_with_a_cancellation_or_an_interruption_is_told(
    control: BaseException, reason: dict[str, JsonValue]
) -> None:
    control.add_note("while waiting")
    control.__cause__ = OSError("disk")
    group = BaseExceptionGroup("both", [control, ValueError("real cause")])
    raised = reason.get("reason", "asyncio.exceptions.CancelledError")
    related: list[JsonValue] = [
        {"raised": raised, "member_of": [0], "notes": ["while waiting"]},
        {"raised": "ValueError: real cause", "member_of": [0]},
        {"raised": "OSError: disk", "cause_of": [1]},
    ]
    assert error_of_exception(group).details == {
        **reason,
        "exception": "BaseExceptionGroup",
        "raised": "BaseExceptionGroup: both (2 sub-exceptions)",
        "related": related,
    }
    alone = details_of(error_of_exception(control))
    assert alone["notes"] == ["while waiting"]
    assert alone["related"] == [{"raised": "OSError: disk", "cause_of": [0]}]


def test_without_asyncio_no_exception_is_a_cancellation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "asyncio")
    assert error_of_exception(KeyboardInterrupt()).kind == "interrupted"


def test_a_timeout_says_how_much_time_there_was() -> None:
    assert in_words(error_of_timeout(30_000)) == (
        "tool_timed_out",
        "the tool timed out after 30 s",
        {"timeout_ms": 30_000},
        "do less in one call, or give it more time; what it did so far may remain",
        True,
    )
    assert error_of_timeout(1_500).message == "the tool timed out after 1.5 s"
    assert error_of_timeout(3_600_000).message == "the tool timed out after 3600 s"
    told = error_of_timeout(1, RuntimeError("while cleaning up"))
    assert told.details == {
        "timeout_ms": 1,
        "raised": "RuntimeError: while cleaning up",
        "exception": "RuntimeError",
    }


def test_a_refusal_says_who_refused_and_why() -> None:
    assert in_words(error_of_refusal(refused_by="user", reason="it deletes\nmy files")) == (
        "permission_denied",
        "the call was refused by user: it deletes my files",
        {"refused_by": "user", "reason": "it deletes\nmy files"},
        "do not make the same call again; ask, or choose another way",
        False,
    )
    told = error_of_refusal(refused_by="hook", reason=" ")
    assert (told.message, told.details) == ("the call was refused by hook", {"refused_by": "hook"})
    assert CompleteOutput.failure("Bash", told).final_state == "denied"


@each_case(
    ("name", "similar"),
    [
        ("BASH", ["Bash"]),
        ("bashout", ["BashOutput", "Bash"]),
        ("Raed", ["Read"]),
        ("telephone", []),
        ("", []),
    ],
)
def test_for_an_unknown_tool_similar_names_are_proposed(name: str, similar: list[str]) -> None:
    known = {"Read", "Bash", "BashOutput", "Edit"}
    told = error_of_unknown_tool(name, known)
    expected: dict[str, JsonValue] = {"tool_name": name, "known": [*sorted(known)]}
    hint = "call one of the tools that are offered"
    if similar:
        hint = f"did you mean {' or '.join(similar)}?"
    assert in_words(told) == ("unknown_tool", f"there is no tool {name}", expected, hint, False)
    assert error_of_unknown_tool(name, sorted(known)) == told


def test_a_tool_that_is_not_exposed_is_told_from_one_that_is_unknown() -> None:
    assert in_words(error_of_unexposed_tool("Deploy")) == (
        "tool_not_exposed",
        "the tool Deploy is not offered here",
        {"tool_name": "Deploy"},
        "call one of the tools that are offered",
        False,
    )


def test_a_truncated_call_is_counted_and_not_repeated() -> None:
    assert in_words(error_of_truncated_call("Write", '{"content": "' + SECRET)) == (
        "truncated_tool_call",
        "the call of Write was cut off before its arguments ended",
        {"tool_name": "Write", "received_char_count": 34},
        "make a shorter call, or spread the work over several calls",
        False,
    )


def test_an_interruption_and_a_cancellation_say_why_if_it_is_known() -> None:
    assert in_words(error_of_interruption("the recorder was killed")) == (
        "interrupted",
        "the call was interrupted before it was done",
        {"reason": "the recorder was killed"},
        "look at what it did before you make the call again",
        True,
    )
    assert in_words(error_of_cancellation()) == (
        "cancelled",
        "the call was cancelled before it was done",
        None,
        "make the call again only when it is still wanted",
        False,
    )


def test_invalid_arguments_are_told_in_the_words_of_the_contract() -> None:
    told = error_of_invalid_arguments("ExecCommand", "missing field `cmd`")
    assert in_words(told) == (
        "invalid_tool_input",
        "input for ExecCommand does not match the tool schema",
        {"tool_name": "ExecCommand", "parse_error": "missing field `cmd`"},
        "provide input for ExecCommand that matches the published tool schema",
        False,
    )


LONG = "a\nb" * 50_000 + "\nTHE CAUSE"
"""150,010 characters."""


def what_it_holds(told: ToolError) -> str:
    return f"{told.message} {' '.join(map(str, details_of(told).values()))}"


@each_case(
    "told",
    [
        error_of_exception(ValueError(LONG)),
        error_of_exception(SystemExit(LONG)),
        error_of_exception(asyncio.CancelledError(LONG)),
        error_of_exception(KeyboardInterrupt(LONG)),
        error_of_timeout(1, ValueError(LONG)),
        error_of_refusal(refused_by=LONG),
        error_of_refusal(refused_by="user", reason=LONG),
        error_of_invalid_arguments("Edit", LONG),
        error_of_interruption(LONG),
        error_of_cancellation(LONG),
    ],
)
def test_a_long_text_is_whole_in_the_complete_output_and_cut_by_the_projection(
    told: ToolError,
) -> None:
    assert LONG in what_it_holds(told)
    output = CompleteOutput.failure("Tool", told)
    projection, receipt, _ = surfaces(output, "generic")
    assert projection.canonical.error is not None
    assert len(projection.canonical.error.message) <= MAX_MESSAGE_CHARS
    assert len(projection.canonical.to_json()) <= 2 * MAX_MESSAGE_CHARS
    assert len(receipt.text) <= 5_000
    cut = {omission.field for omission in (*projection.omissions, *receipt.omissions)}
    assert "error.details" in cut or "error.message" in cut


def test_a_text_of_millions_of_characters_is_kept_whole() -> None:
    text = "A" * 600_000 + "B" * 3_000_000 + "C" * 600_000
    assert error_of_exception(ValueError(text)).message == f"ValueError: {text}"
    assert details_of(error_of_cancellation(text))["reason"] == text


NAME = "a\nb" * 1_000


@pytest.mark.parametrize(
    "told",
    [
        error_of_unknown_tool(NAME, ["Read"]),
        error_of_unexposed_tool(NAME),
        error_of_invalid_arguments(NAME, "no"),
        error_of_truncated_call(NAME, "{"),
    ],
)
def test_a_name_is_on_one_line_and_as_long_as_that_of_a_call_at_most(told: ToolError) -> None:
    name = cast("str", details_of(told)["tool_name"])
    assert name.startswith("a ba b")
    assert len(name) == 256
    assert name in told.message
    assert "\n" not in told.message


def test_a_refusal_is_one_sentence_whatever_refused_it() -> None:
    told = error_of_refusal(refused_by="a\nhook", reason="two\r\nlines")
    assert told.message == "the call was refused by a hook: two lines"
    assert told.details == {"refused_by": "a\nhook", "reason": "two\nlines"}
