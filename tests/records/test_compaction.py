"""The compaction view: what must stay stays, the rest is bounded, and what is gone is said."""

import json
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from tests.records.support import surfaces, whole
from tests.support.outputs import returned

from tooltrail.records import (
    CanonicalResult,
    CommandOutput,
    CompleteOutput,
    ToolError,
    canonical_json,
    compact,
)

MARKER = re.compile(r"\[\.\.\. ([\d,]+) characters omitted \.\.\.\]")


def success(**result: Any) -> CanonicalResult:
    return CanonicalResult(
        tool_name="tool", status="success", summary_text="it worked", result=result, error=None
    )


def failure(message: str = "it did not work", **fields: Any) -> CanonicalResult:
    error = ToolError(kind="patch_failed", message=message, **fields)
    return CanonicalResult(
        tool_name="tool", status="error", summary_text="no", result=None, error=error
    )


def result_of(canonical: CanonicalResult, *chars: int) -> Any:
    return compact(canonical, *chars).result


def details_of(canonical: CanonicalResult, *chars: int) -> Any:
    error = compact(canonical, *chars).error
    assert error is not None
    return error.details


def command(
    stdout: bytes, stderr: bytes = b"", *, exit_status: int = 0, line: str | None = "make"
) -> CanonicalResult:
    output = CommandOutput(
        command=line,
        cwd="/src",
        exit_status=exit_status,
        stdout=whole(stdout),
        stderr=whole(stderr, "stderr"),
    )
    return surfaces(CompleteOutput.success("Bash", output), "command")[0].canonical


def generic(*content: str | bytes, structured: JsonValue = None) -> CanonicalResult:
    output = returned("mcp__tool", *content, structured=structured)
    return surfaces(output, "generic")[0].canonical


def test_a_small_result_stays_as_it_is() -> None:
    small = command(b"done\n", b"warning\n", exit_status=2)
    assert compact(small) == small
    assert compact(small).to_json() == small.to_json()
    plain = generic("hello", structured={"a": [1, 2.5, None, True], "b": {}})
    assert compact(plain) == plain


def test_a_long_preview_keeps_both_ends_and_its_flag_becomes_true() -> None:
    long = command(b"first\n" + b"x" * 5_000 + b"\nlast\n", b"warning\n", exit_status=1)
    result = result_of(long)
    shown = result["stdout_preview"]
    assert 500 < len(shown) <= 1_000
    assert shown.startswith("first\nxxx")
    assert shown.endswith("xxx\nlast\n")
    marker = MARKER.search(shown)
    assert marker is not None
    left = len(shown) - len(marker[0])
    assert int(marker[1].replace(",", "")) == len("first\n" + "x" * 5_000 + "\nlast\n") - left
    assert result["stdout_truncated"] is True
    assert result["stderr_truncated"] is False
    assert result["truncated"] is True
    assert result["stderr_preview"] == "warning\n"
    assert (result["exit_status"], result["disposition"]) == (1, "completed")


def test_long_texts_share_the_budget() -> None:
    both = success(a_preview="a" * 5_000, b_preview="b" * 4_000, c_preview="c" * 50)
    result = result_of(both, 600)
    assert abs(len(result["a_preview"]) - len(result["b_preview"])) <= 1
    assert result["c_preview"] == "c" * 50
    assert 580 <= len(canonical_json.encode(result)) <= 600 + len('"truncated":true,')


def test_a_dropped_preview_turns_its_flag_and_an_empty_one_does_not() -> None:
    assert result_of(command(b"done\n", exit_status=3), 0) == {
        "disposition": "completed",
        "exit_status": 3,
        "stdout_truncated": True,
        "stderr_truncated": False,
        "truncated": True,
    }


def test_what_would_not_be_shorter_stays_whole() -> None:
    small = success(a=1)
    assert compact(small, 0) is small
    # `{"truncated":true}` is as long as `{"a":"1234567890"}` and shorter than one digit more.
    assert result_of(success(a="1234567890"), 0) == {"a": "1234567890"}
    assert result_of(success(a="12345678901"), 0) == {"truncated": True}


def test_the_flag_of_a_content_item_is_its_truncated() -> None:
    result = result_of(generic("y" * 3_000))
    (item,) = result["content"]
    assert MARKER.search(item["text_preview"])
    assert item["truncated"] is True
    assert result["truncated"] is True


def test_every_object_around_a_missing_part_says_so() -> None:
    assert result_of(
        success(x_id=1, other={"y_id": 2, "deep": {"log": "q" * 3_000, "n": 1}}), 60
    ) == {
        "x_id": 1,
        "other": {"y_id": 2, "deep": "[... 2 members omitted ...]", "truncated": True},
        "truncated": True,
    }


ESSENTIAL = {
    "task_id": "task_123",
    "task_handle": {"task_id": "task_123", "kind": "command_task", "status": "running"},
    "agent_handle": "agent-7",
    "child_session_id": None,
    "number_id": 17,
    "disposition": "promoted_to_task",
    "retrieval_status": "not_ready",
    "exit_status": None,
    "initial_output_truncated": False,
    "truncated": False,
    "artifacts": [{"path": "sha256/aa/aa.zst"}, {"path": "sha256/bb/bb.zst"}],
    "stdout_artifact": 0,
    "failure_artifact": 1,
}


def test_what_is_always_kept_needs_no_budget() -> None:
    assert result_of(success(**ESSENTIAL), 0) == ESSENTIAL
    assert details_of(failure(details=ESSENTIAL), 0) == ESSENTIAL
    assert result_of(success(**nested(250)), 0) == nested(250)


def test_it_is_kept_within_lists_and_objects_that_are_dropped_otherwise() -> None:
    items = [
        {"index": n, "cmd": f"echo {n}", "status": "completed", "result": {**ESSENTIAL, "x": "y"}}
        for n in range(1, 21)
    ]
    result = result_of(success(items=items, item_count=20), 0)
    assert result == {
        "items": [
            {
                "index": n,
                "status": "completed",
                "result": {**ESSENTIAL, "truncated": True},
                "truncated": True,
            }
            for n in range(1, 21)
        ],
        "truncated": True,
    }


def test_the_envelope_and_the_error_around_its_details_are_kept() -> None:
    failed = failure(
        message="m" * 700,
        recovery_hint="h" * 700,
        retryable=True,
        details={"workdir": "../other", "long": "d" * 900},
    )
    compacted = compact(failed, 150)
    assert (compacted.tool_name, compacted.status, compacted.summary_text) == (
        "tool",
        "error",
        "no",
    )
    assert compacted.result is None
    assert compacted.error is not None
    assert failed.error is not None
    assert compacted.error.model_dump(exclude={"details"}) == failed.error.model_dump(
        exclude={"details"}
    )
    details: Any = compacted.error.details
    long = details.pop("long")
    assert 100 < len(long) < 150
    assert MARKER.sub("", long).strip("d") == ""
    assert details == {"workdir": "../other", "truncated": True}


def test_details_of_any_shape_are_bounded() -> None:
    assert details_of(failure(details=None), 0) is None
    assert details_of(failure(details=5), 0) == 5
    assert details_of(failure(details="e" * 99), 0) == "[... 99 characters omitted ...]"
    assert len(details_of(failure(details="e" * 999), 200)) in range(180, 201)
    assert details_of(failure(details=10**400), 100) == {"truncated": True}
    shown = details_of(failure(details=list(range(50))), 60)
    assert (shown[0], shown[-1]) == (0, 49)
    assert f"[... {51 - len(shown)} items omitted ...]" in shown


def test_of_a_long_list_both_ends_stay_and_the_others_are_counted() -> None:
    paths = [f"src/{n}.py" for n in range(20)]
    result = result_of(success(paths=paths, truncated=False), 160)
    shown = result.pop("paths")
    assert result == {"truncated": True}
    at = next(n for n, one in enumerate(shown) if one not in paths)
    assert at > 2
    assert shown[:at] == paths[:at]
    assert shown[at + 1 :] == paths[at - len(shown) + 1 :]
    assert shown[at] == f"[... {20 - len(shown) + 1} items omitted ...]"


def test_of_entries_without_room_the_essentials_stay() -> None:
    tasks = [{"task_id": f"task_{n}", "note": "n" * 60} for n in range(10)]
    result = result_of(success(tasks=[*tasks, {"note": "no id"}]), 215)
    assert result["tasks"] == [
        *tasks[:3],
        *({"task_id": f"task_{n}", "truncated": True} for n in range(3, 10)),
        "[... 1 item omitted ...]",
    ]


def test_the_outermost_parts_come_first() -> None:
    both = {"a": {"x_id": 1, "note": "n" * 60}, "note": "m" * 60}
    assert result_of(success(**both), 75) == {
        "a": {"x_id": 1, "truncated": True},
        "note": "m" * 60,
        "truncated": True,
    }


@pytest.mark.parametrize("name", ["task_id", "status", "x_handle"])
def test_an_identifier_of_up_to_256_characters_stays(name: str) -> None:
    assert result_of(success(**{name: "i" * 256}, log="l" * 99), 0)[name] == "i" * 256
    assert result_of(success(**{name: "i" * 257}), 0) == {"truncated": True}


def test_the_flag_takes_the_place_of_its_namesake_unless_essentials_stand_there() -> None:
    odd = {"truncated": "by 3", "a": "b" * 20}
    assert result_of(success(**odd), 30) == {"truncated": True}
    named = {"truncated": {"x_id": 1}, "a": "b"}
    assert result_of(success(**named), 0) == {"truncated": {"x_id": 1}}


def test_data_with_the_name_of_an_essential_is_data() -> None:
    odd = {"x_truncated": "half", "x_artifact": "a.zst", "artifact": True}
    odd |= {"artifacts": [{"path": "p", "note": "n"}, 1], "handle": ["a", "b"], "truncated": "by 3"}
    assert result_of(success(**odd)) == odd
    assert result_of(success(**odd), 0) == {"truncated": True}


def nested(levels: int) -> dict[str, JsonValue]:
    value: dict[str, JsonValue] = {"x_id": "innermost", "status": "done"}
    for _ in range(levels - 1):
        value = {"x_id": "outer", "in": value}
    return value


HOSTILE: list[dict[str, Any]] = [
    {f"key{n}": "v" * 300 for n in range(50_000)},
    {f"key{n}_preview": "v" * 300 for n in range(10_000)},
    {"text_preview": "ab\n" * 3_000_000},
    {"k" * 10_000_000: 1, "k" * 256: 2},
    {"number": 10**4_000, "wide_id": 10**4_000},
    {"list": [[{"a": [0] * 100}] * 100] * 50},
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_ordinary_makes_a_compaction_long(hostile: dict[str, Any]) -> None:
    once = compact(success(**hostile))
    text = once.to_json().decode()
    assert len(text) <= 10_000
    assert '"truncated":true' in text
    assert compact(once) == once


def test_a_text_is_cut_between_user_perceived_characters() -> None:
    family = "👨\u200d👩\u200d👧\u200d👦"
    head, _, tail = MARKER.split(result_of(success(x=family * 1000))["x"])
    assert head
    assert head == family * (len(head) // len(family))
    assert tail == family * (len(tail) // len(family))


NAMES = st.sampled_from(
    [
        *("task_id", "task_handle", "handle", "status", "index", "exit_status", "disposition"),
        *("artifacts", "artifact", "stdout_artifact", "truncated", "stdout_truncated"),
        *("stdout_preview", "preview", "total", "returned", "items", "path", "a", "b", "\ud800"),
        *("n" * 256, "n" * 257),
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 12),
    st.sampled_from([10**300, 10**400, 2.5]),
    st.text(max_size=3),
    st.sampled_from(["x" * 64, "x" * 65, "é\n" * 128, "x" * 257, "x" * 1_025, "👍🏽" * 99]),
)
REFERENCES = st.lists(
    st.sampled_from([{"path": "p"}, {"path": "q" * 1_025}, {"path": "p", "note": "n"}]), max_size=4
)


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(SCALARS, REFERENCES),
    lambda inner: st.one_of(
        st.lists(inner, max_size=11), st.dictionaries(NAMES, inner, max_size=9)
    ),
    max_leaves=60,
)


def several(content: list[str | bytes], structured: JsonValue) -> CanonicalResult:
    return generic(*content, structured=structured)


RESULTS = st.one_of(
    st.dictionaries(NAMES, VALUES, max_size=12).map(lambda result: success(**{"a": 1} | result)),
    VALUES.map(lambda details: failure(details=details)),
    st.builds(
        command,
        st.text(max_size=400).map(str.encode),
        st.text(max_size=400).map(str.encode),
        exit_status=st.integers(0, 255),
        line=st.none() | st.text(max_size=300),
    ),
    st.builds(
        several, st.lists(st.text(max_size=300) | st.binary(max_size=9), max_size=12), VALUES
    ),
)
BUDGETS = st.integers(0, 1_000)


def body(canonical: CanonicalResult) -> JsonValue:
    return canonical.result if canonical.error is None else canonical.error.details


def ids(value: JsonValue) -> list[JsonValue]:
    """All identifiers that are short enough."""
    if isinstance(value, list):
        return [found for item in value for found in ids(item)]
    if not isinstance(value, dict):
        return []
    here = [v for k, v in value.items() if k == "task_id" and is_identifier(v)]
    return here + [found for v in value.values() for found in ids(v)]


def is_identifier(value: JsonValue) -> bool:
    is_short = not isinstance(value, dict | list) and len(str(value)) <= 256
    return is_short and " omitted ...]" not in str(value)


def sorted_ids(value: JsonValue) -> list[str]:
    return sorted(canonical_json.encode_text(found) for found in ids(value))


@given(RESULTS, BUDGETS)
def test_a_compaction_is_final_no_longer_and_loses_no_identifier(
    canonical: CanonicalResult, chars: int
) -> None:
    once = compact(canonical, chars)
    assert compact(once, chars) == once
    assert type(once).from_json(once.to_json()) == once
    assert compact(CanonicalResult.from_json(canonical.to_json()), chars) == once
    assert once == canonical or len(once.to_json()) < len(canonical.to_json())
    assert sorted_ids(body(once)) == sorted_ids(body(canonical))
    same = {"tool_name", "status", "summary_text"}
    assert once.model_dump(include=same) == canonical.model_dump(include=same)
    if canonical.error is not None:
        assert once.error is not None
        kept = {"kind", "message", "recovery_hint", "retryable"}
        assert once.error.model_dump(include=kept) == canonical.error.model_dump(include=kept)
    # What is not essential keeps to the budget, and a loss is flagged at the top.
    if once != canonical:
        told = spelled(once)
        marks = 17 * told.count(',"truncated":true') + 40 * told.count(" omitted ")
        assert len(told) <= len(spelled(compact(canonical, 0))) + chars + marks
        found = body(once)
        if isinstance(found, dict):
            assert found["truncated"] is True or isinstance(found["truncated"], dict | list)


def names(value: JsonValue) -> Counter[str]:
    """The names of all members but those that speak of a loss."""
    if isinstance(value, list):
        return sum((names(item) for item in value), Counter[str]())
    if not isinstance(value, dict):
        return Counter()
    own = Counter(value.keys() - {"truncated", "\u2026"})
    return sum((names(member) for member in value.values()), own)


@given(RESULTS, BUDGETS, st.integers(0, 1_000))
def test_a_larger_budget_afterwards_brings_nothing_back(
    canonical: CanonicalResult, chars: int, more: int
) -> None:
    once = compact(canonical, chars)
    again = compact(once, chars + more)
    assert len(again.to_json()) <= len(once.to_json())
    assert names(body(again)) <= names(body(once))
    before = set(texts(body(once)))
    assert all(text in before or MARKER.search(text) for text in texts(body(again)))


def texts(value: JsonValue) -> list[str]:
    """All texts but those of references, which are kept whole."""
    if isinstance(value, dict):
        return [t for k, v in value.items() if k != "path" for t in texts(v)]
    if isinstance(value, list):
        return [text for item in value for text in texts(item)]
    return [value] if isinstance(value, str) else []


def spelled(canonical: CanonicalResult) -> str:
    return json.dumps(canonical.model_dump(), ensure_ascii=False, separators=(",", ":"))
