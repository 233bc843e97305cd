"""The receipt of a compacted result: it names what is left, and says that it is not all."""

import re

from hypothesis import given
from hypothesis import strategies as st
from tests.records.support import surfaces
from tests.support.cases import each_case
from tests.support.family_examples import EXAMPLES

from tooltrail.records import (
    DEFAULT_POLICY,
    CanonicalResult,
    CompleteOutput,
    ToolError,
    compact,
    default_families,
    render,
)

NOTICE = "[compacted: only a part of this result is left]"
FAMILIES = tuple(default_families())
FAMILY_OF = {kind: family for family in FAMILIES for kind in family.result_types}
BUDGETS = (1_000, 0, 150)


@each_case("chars", BUDGETS)
@each_case("summary", EXAMPLES)
def test_a_result_of_every_family_renders_at_every_budget(summary: str, chars: int) -> None:
    family = FAMILY_OF[type(EXAMPLES[summary])]
    output = CompleteOutput.success("Tool", EXAMPLES[summary])
    canonical = surfaces(output, family.name)[0].canonical
    compacted = compact(canonical, chars)
    receipt = render(compacted, family, DEFAULT_POLICY)
    if compacted == canonical:
        assert receipt == render(canonical, family, DEFAULT_POLICY)
        return
    first, second, *lines = receipt.text.splitlines()
    assert (first, second) == (canonical.summary_text, NOTICE)
    assert receipt.renderer_name == "compacted"
    for name in compacted.result or {}:
        assert any(line.startswith(f"{name}:") for line in lines)


def test_some_examples_are_compacted() -> None:
    results = [
        surfaces(CompleteOutput.success("Tool", one), FAMILY_OF[type(one)].name)[0].canonical
        for one in EXAMPLES.values()
    ]
    assert sum(compact(one) != one for one in results) > len(results) // 3


def test_the_receipt_of_a_command() -> None:
    canonical = CanonicalResult(
        tool_name="Bash",
        status="success",
        summary_text="command exited with status 3",
        result={
            "disposition": "completed",
            "exit_status": 3,
            "stdout_preview": "one\r\ntwo\x1b[2J\n" + "x" * 5000,
            "stdout_truncated": False,
            "artifacts": [{"path": "sha256/ab"}],
            "stdout_artifact": 0,
        },
        error=None,
    )
    text = render(compact(canonical, 150), FAMILIES[0], DEFAULT_POLICY).text
    cut = re.compile(r"x+\[\.\.\. 4,9\d\d characters omitted \.\.\.\]x+")
    assert cut.sub("(both ends)", text) == (
        "command exited with status 3\n"
        "[compacted: only a part of this result is left]\n"
        'artifacts: [{"path":"sha256/ab"}]\n'
        "disposition: completed\n"
        "exit_status: 3\n"
        "stdout_artifact: 0\n"
        "stdout_preview:\n"
        "  one\n"
        "  two\\x1b[2J\n"
        "  (both ends)\n"
        "stdout_truncated: true\n"
        "truncated: true\n"
    )


def test_the_receipt_of_a_failure_is_that_of_its_error() -> None:
    error = ToolError(kind="patch_failed", message="no such line", details={"a": "b" * 5000})
    canonical = surfaces(CompleteOutput.failure("Edit", error), "generic")[0].canonical
    text = render(compact(canonical, 0), FAMILIES[0], DEFAULT_POLICY).text
    assert text.startswith("Error (patch_failed): no such line\n")
    assert text.endswith(f"\n{NOTICE}\n")


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text())))
def test_no_text_passes_for_another_line(members: dict[str, object]) -> None:
    canonical = CanonicalResult.model_validate(
        {
            "tool_name": "t",
            "status": "success",
            "summary_text": "s",
            "result": {**members, "long": "y" * 5000},
            "error": None,
        }
    )
    compacted = compact(canonical, 500)
    text = render(compacted, FAMILIES[0], DEFAULT_POLICY).text
    margin = [line for line in text.split("\n")[2:-1] if not line.startswith("  ")]
    assert len(margin) == len(compacted.result or {})
