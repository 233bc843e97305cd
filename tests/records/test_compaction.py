"""The compaction view: what must stay stays, the rest is bounded, and what is gone is said."""

import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError
from tests.records.support import surfaces, whole
from tests.support.outputs import returned

from tooltrail.records import (
    CanonicalResult,
    CommandOutput,
    CompactionBudget,
    CompleteOutput,
    FileChange,
    FileMutationOutput,
    ToolError,
    WorkItem,
    WorkItemOutput,
    canonical_json,
    compact,
)

MARKER = re.compile(r"\[\.\.\. ([\d,]+) characters omitted \.\.\.\]")
NOTHING_ORDINARY = CompactionBudget(max_nodes=0)


def success(**result: Any) -> CanonicalResult:
    return CanonicalResult(
        tool_name="tool", status="success", summary_text="it worked", result=result, error=None
    )


def failure(message: str = "it did not work", **fields: Any) -> CanonicalResult:
    error = ToolError(kind="patch_failed", message=message, **fields)
    return CanonicalResult(
        tool_name="tool", status="error", summary_text="no", result=None, error=error
    )


def references(count: int, width: int) -> list[JsonValue]:
    return [{"path": f"{n:0{width}}"} for n in range(count)]


def result_of(canonical: CanonicalResult, budget: CompactionBudget | None = None) -> Any:
    compacted = compact(canonical) if budget is None else compact(canonical, budget)
    return compacted.result


def details_of(canonical: CanonicalResult, budget: CompactionBudget | None = None) -> Any:
    error = (compact(canonical) if budget is None else compact(canonical, budget)).error
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
    assert len(shown) <= 256
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


def test_a_dropped_preview_turns_its_flag_too() -> None:
    assert result_of(command(b"done\n", b"warning\n", exit_status=3), NOTHING_ORDINARY) == {
        "disposition": "completed",
        "exit_status": 3,
        "stdout_truncated": True,
        "stderr_truncated": True,
        "truncated": True,
    }


def test_an_empty_preview_that_is_dropped_turns_no_flag() -> None:
    assert result_of(command(b"ok\n"), NOTHING_ORDINARY) == {
        "disposition": "completed",
        "exit_status": 0,
        "stdout_truncated": True,
        "stderr_truncated": False,
        "truncated": True,
    }


@pytest.mark.parametrize("nothing", [None, "", [], {}])
def test_with_an_empty_member_nothing_is_lost(nothing: JsonValue) -> None:
    silent = {"task_id": "t", "x_preview": nothing, "x_truncated": False, "truncated": False}
    assert result_of(success(**silent), NOTHING_ORDINARY) == {
        "task_id": "t",
        "x_truncated": False,
        "truncated": False,
    }
    assert result_of(success(inner={"task_id": "t", "x": nothing}), NOTHING_ORDINARY) == {
        "inner": {"task_id": "t"}
    }


@pytest.mark.parametrize("something", [0, False, " ", [None], {"a": None}])
def test_with_any_other_member_something_is_lost(something: JsonValue) -> None:
    noted = {"task_id": "t", "x_preview": something, "x_truncated": False, "truncated": False}
    assert result_of(success(**noted), NOTHING_ORDINARY) == {
        "task_id": "t",
        "x_truncated": True,
        "truncated": True,
    }


def test_a_name_that_is_too_long_and_an_entry_are_lost_also_when_they_are_empty() -> None:
    assert result_of(success(**{"x_id": 1, "k" * 257: None})) == {"x_id": 1, "truncated": True}
    assert result_of(success(x=[None] * 40))["x"] == [*[None] * 8, "[... 32 items omitted ...]"]


def test_what_would_not_be_shorter_stays_whole() -> None:
    nine = success(truncated=True, xs=list(range(9)))
    assert compact(nine) == nine
    small = success(a=1)
    assert compact(small, NOTHING_ORDINARY) == small
    # `{"truncated":true}` is as long as `{"a":"1234567890"}` and shorter than one digit more.
    assert result_of(success(a="1234567890"), NOTHING_ORDINARY) == {"a": "1234567890"}
    assert result_of(success(a="12345678901"), NOTHING_ORDINARY) == {"truncated": True}


def test_a_list_of_one_entry_too_many_stays_whole_within_a_result_that_is_cut() -> None:
    result = result_of(success(xs=list(range(9)), inner={"x_id": 1, "n": 2}, log="l" * 999))
    assert result.pop("log").endswith("l")
    assert result == {"xs": list(range(9)), "inner": {"x_id": 1, "n": 2}, "truncated": True}


def test_a_long_list_of_todos_and_a_mutation_of_nine_files_do_not_grow() -> None:
    todos = tuple(
        WorkItem(work_item_id=str(n), title=f"t{n}", status="pending") for n in range(100)
    )
    listed = CompleteOutput.success("TodoWrite", WorkItemOutput(action="updated", items=todos))
    files = tuple(FileChange(action="modify", path=f"src/{n}.py") for n in range(9))
    mutated = CompleteOutput.success("Edit", FileMutationOutput(changed_files=files))
    for output, family in ((listed, "work_item"), (mutated, "file_mutation")):
        canonical = surfaces(output, family)[0].canonical
        assert len(compact(canonical).to_json()) <= len(canonical.to_json())


def test_what_moves_to_the_front_is_counted_the_first_time_as_it_is_the_second_time() -> None:
    # The entry with the id moves to the front when the number before it is gone.
    entries: list[JsonValue] = [10**400, {"x_id": 1, "n": 2}]
    budget = CompactionBudget(max_items=1, max_nodes=1)
    once = compact(success(list=entries, z={"a": {"y_id": 1, "w": "w" * 99}}), budget)
    assert compact(once, budget) == once
    assert once.result == {
        "list": [{"x_id": 1, "truncated": True}, "[... 1 item omitted ...]"],
        "z": {"a": {"y_id": 1, "truncated": True}, "truncated": True},
        "truncated": True,
    }


def test_the_flag_of_a_content_item_is_its_truncated() -> None:
    result = result_of(generic("y" * 300))
    (item,) = result["content"]
    assert MARKER.search(item["text_preview"])
    assert item["truncated"] is True
    assert result["truncated"] is True


def test_an_object_that_has_no_flag_gets_one_when_something_is_missing() -> None:
    assert result_of(success(text_preview="z" * 64, other={"deep_preview": "q" * 300})) == {
        "text_preview": "z" * 64,
        "other": {
            "deep_preview": "q" * 112 + "[... 76 characters omitted ...]" + "q" * 112,
            "truncated": True,
        },
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
    assert result_of(success(**ESSENTIAL), NOTHING_ORDINARY) == ESSENTIAL
    assert details_of(failure(details=ESSENTIAL), NOTHING_ORDINARY) == ESSENTIAL


def test_it_is_kept_within_lists_and_objects_that_are_dropped_otherwise() -> None:
    items = [
        {"index": n, "cmd": f"echo {n}", "status": "completed", "result": {**ESSENTIAL, "x": "y"}}
        for n in range(1, 21)
    ]
    result = result_of(success(items=items, item_count=20), NOTHING_ORDINARY)
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


def test_the_largest_batch_that_a_policy_allows_loses_no_essential() -> None:
    one = {
        "disposition": "completed",
        "exit_status": 1,
        "stdout_truncated": True,
        "stderr_truncated": True,
        "truncated": True,
        "artifacts": references(2, 75),
        "stdout_artifact": 0,
        "stderr_artifact": 1,
    }
    items = [{"index": n, "status": "completed", "result": one} for n in range(1, 257)]
    batch = {"items": items, "truncated": True}
    assert result_of(success(**batch), NOTHING_ORDINARY) == batch


def test_the_envelope_and_the_error_around_its_details_are_kept() -> None:
    failed = failure(
        message="m" * 700,
        recovery_hint="h" * 700,
        retryable=True,
        details={"workdir": "../other", "long": "d" * 900},
    )
    compacted = compact(failed, CompactionBudget(string_chars=64))
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
    assert details == {
        "workdir": "../other",
        "long": "d" * 16 + "[... 868 characters omitted ...]" + "d" * 16,
        "truncated": True,
    }


def test_details_of_any_shape_are_bounded() -> None:
    assert details_of(failure(details=None)) is None
    assert details_of(failure(details=5)) == 5
    assert details_of(failure(details="e" * 64)) == "e" * 64
    assert len(details_of(failure(details="e" * 65), CompactionBudget(string_chars=64))) == 64
    eight = [0, 1, 2, 3, 4, 5, 6, 7]
    assert details_of(failure(details=list(range(50)))) == [*eight, "[... 42 items omitted ...]"]
    assert details_of(failure(details=10**400)) == {"truncated": True}


def test_of_a_long_list_eight_items_stay_and_the_others_are_counted() -> None:
    assert result_of(success(paths=[f"src/{n}.py" for n in range(20)], truncated=False)) == {
        "paths": [*(f"src/{n}.py" for n in range(8)), "[... 12 items omitted ...]"],
        "truncated": True,
    }
    assert result_of(success(paths=list(range(8)))) == {"paths": list(range(8))}


def test_of_entries_behind_the_eighth_the_essentials_stay() -> None:
    tasks = [{"task_id": f"task_{n}", "note": "n" * 60} for n in range(10)]
    result = result_of(success(tasks=[*tasks, {"note": "no id"}]))
    assert result["tasks"] == [
        *tasks[:8],
        {"task_id": "task_8", "truncated": True},
        {"task_id": "task_9", "truncated": True},
        "[... 1 item omitted ...]",
    ]


def test_what_is_nested_deeper_than_four_levels_is_dropped() -> None:
    deep = {"two": {"three": {"four": {"scalar": 1, "five": {"six": "6" * 99}}}}, "scalar": 0}
    four = {"four": {"scalar": 1, "truncated": True}, "truncated": True}
    assert result_of(success(**deep)) == {
        "two": {"three": four, "truncated": True},
        "scalar": 0,
        "truncated": True,
    }
    assert result_of(success(list=[[[["1" * 99]]], 5])) == {
        "list": [[["[... 1 item omitted ...]"]], 5],
        "truncated": True,
    }


def test_of_many_members_64_stay_and_the_outermost_come_first() -> None:
    result = result_of(
        success(a={f"in{n}": n for n in range(70)}, **{f"k{n}": n for n in range(40)})
    )
    inner = result.pop("a")
    assert result == {**{f"k{n}": n for n in range(40)}, "truncated": True}
    assert inner.pop("truncated") is True
    assert len(inner) == 64 - 40 - 1


def test_previews_are_the_first_to_go() -> None:
    result = result_of(
        success(a_preview="text", z="fact", a_truncated=False), CompactionBudget(max_nodes=1)
    )
    assert result == {"z": "fact", "a_truncated": True, "truncated": True}


@pytest.mark.parametrize("name", ["task_id", "status", "x_handle"])
def test_half_an_identifier_is_worse_than_none(name: str) -> None:
    assert result_of(success(**{name: "i" * 256})) == {name: "i" * 256}
    assert result_of(success(**{name: "i" * 257})) == {"truncated": True}
    assert result_of(success(task_handle={"kind": "k" * 257, "task_id": "t"})) == {
        "task_handle": {"task_id": "t", "truncated": True},
        "truncated": True,
    }


def test_the_flag_takes_the_place_of_its_namesake_unless_essentials_stand_there() -> None:
    odd = {"truncated": {"by": 3}, "x_truncated": "half", "x_preview": "p", "a": "b"}
    assert result_of(success(**odd)) == odd
    assert result_of(success(**odd), NOTHING_ORDINARY) == {"truncated": True}
    assert result_of(success(**odd), CompactionBudget(max_nodes=3)) == {
        "a": "b",
        "x_truncated": "half",
        "truncated": {"truncated": True},
    }
    named = {"truncated": {"x_id": 1}, "a": "b"}
    assert result_of(success(**named), NOTHING_ORDINARY) == {"truncated": {"x_id": 1}}


def test_data_with_the_name_of_an_essential_is_data() -> None:
    odd = {"x_truncated": "half", "x_artifact": "a.zst", "y_artifact": -1, "artifact": True}
    odd |= {"artifacts": [{"path": "p", "note": "n"}, 1], "handle": ["a", "b"], "truncated": "by 3"}
    assert result_of(success(**odd)) == odd
    assert result_of(success(**odd), NOTHING_ORDINARY) == {"truncated": True}


@pytest.mark.parametrize("artifacts", [7, [], {"path": "p"}, [{"path": 7}], [["path"]]])
def test_artifacts_that_are_no_references_are_data(artifacts: JsonValue) -> None:
    assert result_of(success(artifacts=artifacts)) == {"artifacts": artifacts}


def test_an_index_points_at_what_it_pointed_at_before() -> None:
    content = [{"artifact": n, "size": 1} for n in range(30)]
    result = result_of(success(content=content, artifacts=references(30, 75)))
    assert result["artifacts"] == references(30, 75)
    items = result["content"]
    assert [item["artifact"] for item in items] == list(range(30))


def nested(levels: int) -> dict[str, JsonValue]:
    value: dict[str, JsonValue] = {"x_id": "innermost"}
    for _ in range(levels - 1):
        value = {"x_id": "outer", "in": value}
    return value


HOSTILE: list[dict[str, Any]] = [
    {f"key{n}": "v" * 300 for n in range(50_000)},
    {f"key{n}_preview": "v" * 300 for n in range(10_000)},
    {"text_preview": "ab\n" * 30_000_000},
    {"k" * 10_000_000: 1, "k" * 256: 2},
    {"number": 10**4_000, "wide_id": 10**4_000},
    nested(250),
    {"list": [[{"a": [0] * 100}] * 100] * 50},
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_ordinary_makes_a_compaction_long(hostile: dict[str, Any]) -> None:
    once = compact(success(**hostile))
    text = once.to_json().decode()
    assert len(text) <= 64 * 600
    assert '"truncated":true' in text
    assert compact(once) == once


def test_the_must_keep_class_is_bounded_in_depth() -> None:
    text = compact(success(**nested(250))).to_json().decode()
    assert text.count("x_id") == 32


def test_a_text_is_cut_between_user_perceived_characters() -> None:
    family = "👨\u200d👩\u200d👧\u200d👦"
    (shown,) = result_of(success(x=family * 100)).keys() - {"truncated"}
    assert shown == "x"
    head, _, tail = MARKER.split(result_of(success(x=family * 100))["x"])
    assert head
    assert head == family * (len(head) // len(family))
    assert tail == family * (len(tail) // len(family))


def test_lone_surrogates_and_numbers_that_are_no_json_come_through() -> None:
    wild = {"a\ud800": "b\udfff" * 200, "nan": float("inf"), "e_id": "\ud800"}
    compacted = compact(success(**wild))
    result: Any = compacted.result
    assert result["e_id"] == "\ud800"
    assert result["nan"] == float("inf")
    assert type(compacted).from_json(compacted.to_json()) == compacted


@pytest.mark.parametrize(
    "numbers",
    [{"string_chars": 63}, {"max_depth": 0}, {"max_depth": 9}, {"max_items": 0}, {"max_nodes": -1}],
)
def test_an_impossible_budget_is_refused(numbers: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        CompactionBudget(**numbers)


def test_the_default_budget_is_that_of_the_specification() -> None:
    assert CompactionBudget().model_dump() == {
        "string_chars": 256,
        "max_depth": 4,
        "max_items": 8,
        "max_nodes": 64,
    }


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
        several,
        st.lists(st.text(max_size=300) | st.binary(max_size=9), max_size=12),
        VALUES,
    ),
)
BUDGETS = st.builds(
    CompactionBudget,
    string_chars=st.sampled_from([64, 100, 256]),
    max_depth=st.integers(1, 8),
    max_items=st.integers(1, 12),
    max_nodes=st.integers(0, 64),
)


def body(canonical: CanonicalResult) -> JsonValue:
    return canonical.result if canonical.error is None else canonical.error.details


def ids(value: JsonValue, depth: int = 1) -> list[JsonValue]:
    """All identifiers in the first 32 levels."""
    if depth > 32:
        return []
    if isinstance(value, list):
        return [found for item in value for found in ids(item, depth + 1)]
    if not isinstance(value, dict):
        return []
    here = [v for k, v in value.items() if k == "task_id" and is_identifier(v)]
    inner = [v for k, v in value.items() if len(k) <= 256]
    return here + [found for v in inner for found in ids(v, depth + 1)]


def is_identifier(value: JsonValue) -> bool:
    if isinstance(value, dict | list):
        return False
    return len(str(value)) <= (256 if isinstance(value, str) else 308)


def sorted_ids(value: JsonValue) -> list[str]:
    return sorted(canonical_json.encode_text(found) for found in ids(value))


@given(RESULTS, BUDGETS)
def test_a_compaction_of_a_compaction_changes_nothing(
    canonical: CanonicalResult, budget: CompactionBudget
) -> None:
    once = compact(canonical, budget)
    assert compact(once, budget) == once
    assert compact(canonical, budget).to_json() == once.to_json()
    assert type(once).from_json(once.to_json()) == once
    reread = CanonicalResult.from_json(canonical.to_json())
    assert compact(reread, budget) == once


@given(RESULTS, BUDGETS)
def test_a_compaction_is_never_longer_than_the_result(
    canonical: CanonicalResult, budget: CompactionBudget
) -> None:
    once = compact(canonical, budget)
    assert len(once.to_json()) <= len(canonical.to_json())
    assert once == canonical or len(once.to_json()) < len(canonical.to_json())


def names(value: JsonValue) -> Counter[str]:
    """The names of all members but those that speak of a loss."""
    if isinstance(value, list):
        return sum((names(item) for item in value), Counter[str]())
    if not isinstance(value, dict):
        return Counter()
    own = Counter(value.keys() - {"truncated"})
    return sum((names(member) for member in value.values()), own)


@given(RESULTS, BUDGETS, st.tuples(*[st.integers(0, 30)] * 4))
def test_a_larger_budget_afterwards_brings_nothing_back(
    canonical: CanonicalResult, budget: CompactionBudget, more: tuple[int, int, int, int]
) -> None:
    once = compact(canonical, budget)
    larger = CompactionBudget(
        string_chars=budget.string_chars + more[0],
        max_depth=min(8, budget.max_depth + more[1]),
        max_items=budget.max_items + more[2],
        max_nodes=budget.max_nodes + more[3],
    )
    again = compact(once, larger)
    assert len(again.to_json()) <= len(once.to_json())
    assert names(body(again)) <= names(body(once))
    before = set(texts(body(once)))
    assert all(text in before or MARKER.search(text) for text in texts(body(again)))


@given(RESULTS, BUDGETS)
def test_no_identifier_is_lost_and_the_envelope_stays(
    canonical: CanonicalResult, budget: CompactionBudget
) -> None:
    once = compact(canonical, budget)
    assert sorted_ids(body(once)) == sorted_ids(body(canonical))
    same = {"tool_name", "status", "summary_text"}
    assert once.model_dump(include=same) == canonical.model_dump(include=same)
    if canonical.error is not None:
        assert once.error is not None
        kept = {"kind", "message", "recovery_hint", "retryable"}
        assert once.error.model_dump(include=kept) == canonical.error.model_dump(include=kept)


def texts(value: JsonValue) -> list[str]:
    """All texts but those of references, which are kept whole."""
    if isinstance(value, dict):
        return [t for k, v in value.items() if k != "path" for t in texts(v)]
    if isinstance(value, list):
        return [text for item in value for text in texts(item)]
    return [value] if isinstance(value, str) else []


def contents(value: JsonValue) -> JsonValue:
    """A value without its empty members."""
    if isinstance(value, list):
        return [contents(item) for item in value]
    if not isinstance(value, dict):
        return value
    members = {name: contents(member) for name, member in value.items()}
    return {k: v for k, v in members.items() if len(k) > 256 or v not in (None, "", [], {})}


FLAGS_CHARS = 17 * 32
"""What `,"truncated":true` takes on all levels: a text stays whole that it would not pay to cut."""


@given(RESULTS, BUDGETS)
def test_every_text_keeps_to_the_budget_and_a_loss_is_said_at_the_top(
    canonical: CanonicalResult, budget: CompactionBudget
) -> None:
    once = compact(canonical, budget)
    longest = max(budget.string_chars, 256) + FLAGS_CHARS
    assert all(len(text) <= longest for text in texts(body(once)))
    found = body(once)
    if isinstance(found, dict) and contents(found) != contents(body(canonical)):
        assert found["truncated"] is True or isinstance(found["truncated"], dict | list)
