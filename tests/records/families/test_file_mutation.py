"""Changed files: named in the receipt, their diffs bounded."""

from typing import Any

import pytest
from pydantic import ValidationError
from tests.records.hidden import hidden_of
from tests.records.support import check_golden, lossy, omitted, run, run_result, surfaces, whole
from tests.support.cases import each_case
from tests.support.policies import policy_with

from tooltrail.records import CompleteOutput, FileChange, FileMutationOutput, Hunk, StreamRecord

ONE = policy_with(file_mutation={"preview_chars": 1000, "max_items": 1})
DIFF = b"@@ -1,2 +1,2 @@\n keep\n-old\n+new\n"
LONG = b"-old\n+new\n" * 1000
SMALL = policy_with(file_mutation={"preview_chars": 1000})


def diff_of(data: bytes, n: int = 0) -> StreamRecord:
    return whole(data, f"diff.{n}")


def change(path: str = "src/a.py", action: str = "modify", **fields: Any) -> FileChange:
    return FileChange.model_validate({"action": action, "path": path, **fields})


def mutation(*files: FileChange, diagnostics: tuple[str, ...] = ()) -> FileMutationOutput:
    return FileMutationOutput(changed_files=files, diagnostics=diagnostics)


def test_the_receipt_is_worded_as_in_the_golden_file() -> None:
    check_golden(
        ("file_mutation", 1),
        file_mutation_updated=mutation(
            change(),
            change("src/b.py", "add"),
            change("gone.py", "delete"),
            change("new.py", "move", from_path="old.py"),
        ),
        file_mutation_nothing=mutation(),
        file_mutation_diagnostics=mutation(
            change(diff=diff_of(DIFF)),
            diagnostics=("src/a.py:3: undefined name 'x'", "src/a.py:9:\n  line too long\n"),
        ),
        file_mutation_cut=(
            mutation(change("src/b.py", "add"), change(diff=diff_of(LONG, 1))),
            SMALL,
        ),
        file_mutation_hidden=(
            mutation(
                change("a", "add"),
                change("b", "delete"),
                change("d", "move", from_path="c"),
                diagnostics=("one", "two"),
            ),
            ONE,
        ),
    )


@pytest.mark.parametrize(
    ("count", "summary"),
    [(0, "no file was changed"), (1, "1 file was changed"), (1200, "1,200 files were changed")],
)
def test_the_summary_counts_the_files(count: int, summary: str) -> None:
    assert mutation(*[change()] * count).summary() == summary


def test_the_canonical_result_has_each_file_with_its_hunks_and_its_diff() -> None:
    hunk = Hunk(old_start=1, old_lines=2, new_start=1, new_lines=2)
    output = mutation(change(hunks=(hunk,), diff=diff_of(DIFF)), change("b", "move", from_path="a"))
    assert run_result(output) == {
        "changed_files": [
            {
                "action": "modify",
                "path": "src/a.py",
                "hunks": [{"old_start": 1, "old_lines": 2, "new_start": 1, "new_lines": 2}],
                "diff_preview": "@@ -1,2 +1,2 @@\n keep\n-old\n+new\n",
                "diff_truncated": False,
            },
            {"action": "move", "path": "b", "from_path": "a", "hunks": []},
        ],
        "changed_paths": ["src/a.py", "b"],
        "changed_file_count": 2,
    }


def test_diagnostics_are_repeated_and_counted() -> None:
    result = run_result(mutation(change(), diagnostics=("first", " ")))
    assert result["diagnostics"] == ["first", "(no message)"]
    assert result["diagnostic_count"] == 2
    assert "truncated" not in result


@pytest.mark.parametrize(
    "fields", [{"action": "touch"}, {"path": ""}, {"action": "move", "from_path": ""}]
)
def test_a_change_that_cannot_be_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        change(**fields)


def test_a_long_path_keeps_its_end_and_is_counted() -> None:
    path = "/data/" + "d" * 300 + "/name.py"
    projection, receipt = run(mutation(change(path)))
    shown = "\u2026" + "d" * 231 + "/name.py"
    assert receipt.text.splitlines()[1] == f"M {shown}"
    assert omitted(projection.omissions, "changed_files[0].path", "chars") == 314 - 239
    assert run_result(mutation(change(path)))["changed_paths"] == [shown]
    assert run_result(mutation(change(path)))["truncated"] is True


def test_both_paths_of_a_move_are_counted_by_themselves() -> None:
    moved = change("n" * 241, "move", from_path="o" * 242)
    projection, _ = run(mutation(change(), moved))
    assert omitted(projection.omissions, "changed_files[1].path", "chars") == 2
    assert omitted(projection.omissions, "changed_files[1].from_path", "chars") == 3


@each_case(
    ("path", "shown"),
    [
        ("x\nM secret.py", "x\\nM secret.py"),
        ("a\r\u2028b", "a\\r\\u2028b"),
        ("\x1b[2Ka\0", "\\x1b[2Ka\\x00"),
        ("caf\udce9", "caf\\udce9"),
        ("a\u202eyp.txt", "a\\u202eyp.txt"),
        ("C:\\new  file", "C:\\new  file"),
        ("caf\u00e9/\u6f22", "caf\u00e9/\u6f22"),
    ],
)
def test_a_path_stays_on_its_line(path: str, shown: str) -> None:
    projection, receipt = run(mutation(change(path)))
    assert receipt.text == f"Success. Updated the following files:\nM {shown}\n"
    assert projection.omissions == ()


def test_files_beyond_the_budget_are_listed_in_an_artifact() -> None:
    output = mutation(
        change(diff=diff_of(b"+a\n")),
        change("b\n", diff=lossy(b"+kept\n", 7, "diff.1")),
        change("d", "move", from_path="c"),
    )
    projection, _, publisher = surfaces(
        CompleteOutput.success("ApplyPatch", output), "file_mutation", ONE
    )
    result = run_result(output, ONE)
    assert (len(result["changed_files"]), result["changed_file_count"]) == (1, 3)
    assert omitted(projection.omissions, "changed_files", "items") == 2
    assert omitted(projection.omissions, "changed_files", "bytes") == 6
    assert omitted(projection.omissions, "diff.1", "bytes") == 7
    ((role, reference),) = projection.artifacts
    assert (role, result["hidden_artifact"]) == ("hidden", 0)
    assert result["artifacts"] == [{"path": reference.path}]
    first, second = hidden_of(result, publisher)
    assert (first["field"], first["n"], first["value"]["path"]) == ("changed_files", 1, "b\n")
    assert first["value"]["diff"]["digest"] == whole(b"+kept\n").digest
    assert second == {
        "field": "changed_files",
        "n": 2,
        "value": {"action": "move", "path": "d", "from_path": "c", "hunks": [], "diff": None},
    }


def test_diagnostics_and_hunks_beyond_the_budget_are_listed_too() -> None:
    hunks = tuple(Hunk(old_start=n, old_lines=1, new_start=n, new_lines=1) for n in (1, 17))
    output = mutation(change(hunks=hunks), diagnostics=("first", "second"))
    complete = CompleteOutput.success("ApplyPatch", output)
    projection, receipt, publisher = surfaces(complete, "file_mutation", ONE)
    result = run_result(output, ONE)
    ((_, reference),) = projection.artifacts
    assert hidden_of(result, publisher) == [
        {
            "field": "changed_files[0].hunks",
            "n": 1,
            "value": {"old_start": 17, "old_lines": 1, "new_start": 17, "new_lines": 1},
        },
        {"field": "diagnostics", "n": 1, "value": "second"},
    ]
    assert receipt.text == (
        "Success. Updated the following files:\nM src/a.py\n\nDiagnostics:\nfirst\n"
        f"[1 further diagnostic is not shown; listed in {reference.path}]\n\n"
        f"Artifacts:\n{reference.path} (hidden)\n"
    )


def test_a_long_diagnostic_is_cut_to_a_sentence_and_counted() -> None:
    output = mutation(diagnostics=("d" * 701,))
    projection, receipt = run(output)
    assert receipt.text.endswith("\nDiagnostics:\n" + "d" * 699 + "\u2026\n")
    assert omitted(projection.omissions, "diagnostics[0]", "chars") == 2


def test_many_long_diagnostics_share_the_room_of_the_previews() -> None:
    policy = policy_with(file_mutation={"preview_chars": 1000, "max_items": 10})
    diagnostics = run_result(mutation(diagnostics=("d" * 500,) * 10), policy)["diagnostics"]
    assert [len(text) for text in diagnostics] == [100] * 10
