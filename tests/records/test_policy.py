"""A policy is known by its digest, says everything, and can be loaded from a file's text."""

import copy
import dataclasses
import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.records.support import surfaces
from tests.support.cases import each_case
from tests.support.outputs import returned
from tests.support.policies import policy_with

from tooltrail.records import (
    DEFAULT_POLICY,
    Budget,
    CompleteOutput,
    ErrorBudget,
    FamilyRegistry,
    InvalidRecordError,
    NotFoundError,
    Policy,
    ToolError,
    ToolPolicy,
    canonical_json,
    default_families,
    default_policy,
    digest_of,
    load_policy,
    policy_from_toml,
    stored_policy,
)
from tooltrail.records.families import generic

FAMILIES = default_families()
COMMAND = FAMILIES.named("command")
SMALLER = Budget(preview_chars=16_000, receipt_chars=34_000)

TOML = """
stream_bytes = 4096

[error]
details_chars = 2000

[families.command]
preview_chars = 16000

[tools.my_shell]
family = "command"

[tools.my_shell.budget]
preview_chars = 1_000_000

[tools.Bash.budget]
max_items = 8
"""


def foreign(name: str = "foreign", **budget: int) -> FamilyRegistry:
    """All built-in families and one more."""
    family = dataclasses.replace(
        generic.FAMILY, name=name, budget=generic.GenericBudget.model_validate(budget)
    )
    families = default_families()
    families.register(family)
    return families


def test_the_defaults_are_the_published_ones() -> None:
    assert DEFAULT_POLICY.stream_bytes is None
    assert DEFAULT_POLICY.error == ErrorBudget(message_chars=700, details_chars=1_000)
    assert DEFAULT_POLICY == default_policy() == default_policy(FAMILIES)
    assert dict(DEFAULT_POLICY.families) == {family.name: family.budget for family in FAMILIES}


def test_the_digest_is_the_one_of_the_canonical_json() -> None:
    assert DEFAULT_POLICY.to_json() == canonical_json.encode(DEFAULT_POLICY.model_dump())
    assert DEFAULT_POLICY.digest == digest_of(DEFAULT_POLICY.to_json())
    assert policy_with().digest == DEFAULT_POLICY.digest


def numbers(document: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The path of each number in a document."""
    if isinstance(document, dict):
        members = cast("dict[str, Any]", document)
        return [found for key, member in members.items() for found in numbers(member, (*path, key))]
    return [path] if isinstance(document, int) and path != ("version",) else []


def test_every_number_changes_the_digest() -> None:
    paths = numbers(json.loads(DEFAULT_POLICY.to_json()))
    digests: set[str] = set()
    for *path, last in [("stream_bytes",), *paths]:
        document = json.loads(DEFAULT_POLICY.to_json())
        for budget in document["families"].values():
            budget["receipt_chars"] += 1  # so that a longer preview fits, too
        place = document
        for key in path:
            place = place[key]
        if last != "stream_bytes":
            place[last] += 1 if last in {"preview_chars", "receipt_chars"} else -1
        digests.add(load_policy(document, FAMILIES).digest)
    assert len(digests) == 1 + len(paths)


def test_a_changed_copy_does_not_keep_what_was_computed_of_its_original() -> None:
    original = policy_with()
    before, edge = original.digest, original.edge_bytes
    changed = original.for_tool("x", preview_chars=200_000)
    assert changed.digest == digest_of(changed.to_json()) != before
    assert changed.edge_bytes == 4 * 204_096 != edge
    assert (original.digest, original.edge_bytes) == (before, edge)
    assert copy.deepcopy(original) == original
    assert copy.copy(original).digest == before


def test_a_copy_is_validated() -> None:
    with pytest.raises(ValidationError):
        DEFAULT_POLICY.model_copy(update={"stream_bytes": -1})


@given(st.integers(1_000, 256_000), st.integers(1_000, 256_000), st.integers(-5, 10**6))
def test_a_capture_keeps_four_bytes_for_each_character_of_the_largest_preview(
    command: int, other: int, tool: int
) -> None:
    policy = policy_with(
        command={"preview_chars": command, "receipt_chars": 512_000},
        generic={"preview_chars": other, "receipt_chars": 512_000},
    ).for_tool("Bash", preview_chars=tool)
    rest = [b.preview_chars for n, b in policy.families.items() if n not in ("command", "generic")]
    assert policy.edge_bytes == 4 * (4_096 + max(command, other, min(tool, 256_000), *rest, 0))


def test_one_tool_has_its_own_limit_of_a_stream_and_bounds_of_errors() -> None:
    policy = policy_from_toml(
        "[tools.x]\nstream_bytes = 5\nerror = {message_chars = 1, details_chars = 200}", FAMILIES
    )
    assert (policy.stream_bytes_of("x"), policy.stream_bytes_of("y")) == (5, None)
    assert policy.error_budget_of("x") == ErrorBudget(message_chars=100, details_chars=200)
    assert policy.error_budget_of("y") == policy.error
    failure = CompleteOutput.failure("x", ToolError(kind="broken", message="m" * 300))
    receipt = surfaces(failure, "generic", policy)[1].text
    assert "[output truncated: " in receipt
    assert len(receipt) <= len("Error (broken): ") + 100 + len("    \nRetryable: no\n")


def test_a_file_says_only_what_is_different() -> None:
    policy = policy_from_toml(TOML, FAMILIES)
    assert policy.stream_bytes == 4096
    assert policy.error == ErrorBudget(message_chars=700, details_chars=2000)
    assert policy.families["command"] == SMALLER
    assert policy.families["generic"] == DEFAULT_POLICY.families["generic"]
    assert policy.tools["my_shell"] == ToolPolicy(
        family="command", budget={"preview_chars": 1_000_000}
    )
    assert policy_from_toml("", FAMILIES) == DEFAULT_POLICY


def test_the_numbers_of_a_tool_replace_those_of_its_family_and_are_clamped() -> None:
    policy = policy_from_toml(TOML, FAMILIES)
    mine = policy.budget_of(COMMAND, "my_shell")
    assert (mine.preview_chars, mine.receipt_chars) == (256_000, 258_000)
    bash = policy.budget_of(COMMAND, "Bash")
    assert bash == SMALLER.overridden({"max_items": 8})
    assert policy.budget_of(COMMAND, "shell") == SMALLER


def test_a_tool_is_served_by_the_family_that_the_policy_names() -> None:
    policy = policy_from_toml(TOML, FAMILIES)
    assert policy.family_of("my_shell", FAMILIES) is COMMAND
    assert policy.family_of("Bash", FAMILIES) is COMMAND
    assert policy.family_of("no such tool", FAMILIES) is generic.FAMILY


def test_a_single_call_has_budgets_of_its_own() -> None:
    policy = DEFAULT_POLICY.for_tool("T", preview_chars=1_000).for_tool("T", max_items=3)
    assert policy.tools == {"T": ToolPolicy(budget={"preview_chars": 1_000, "max_items": 3})}
    long, other = (
        surfaces(returned(tool, "x" * 5_000), "generic", policy)[1] for tool in ("T", "U")
    )
    assert len(long.text) <= 1_001
    assert other.text == "x" * 5_000 + "\n"
    assert long.policy_digest == policy.digest != DEFAULT_POLICY.digest


@each_case(
    ("text", "sentence"),
    [
        ("stream_bytes = ", "not TOML"),
        ("stream_bytes = -1", "not a policy"),
        ("version = 2", "not a policy"),
        ("surplus = 1", "not a policy: surplus: unknown key `surplus`$"),
        ("stream_byte = 1", "stream_byte: unknown key `stream_byte`, did you mean `stream_bytes`"),
        ("families = 5", "not a policy: families: it is not a table"),
        ("[families]\ncommand = 5", "families.command: it is not a table"),
        (
            "[families.command]\npreview_char = 5000",
            "^not a policy: families.command.preview_char: unknown key `preview_char`, did you",
        ),
        (
            "[families.command]\npreview_chars = 999",
            "families.command.preview_chars: must be at least 1000$",
        ),
        (
            "[families.command]\npreview_chars = true",
            "families.command.preview_chars: must be a whole number, not true or false$",
        ),
        (
            "[families.command]\npreview_chars = 5000.0",
            "preview_chars: must be a whole number, not a number with a fraction$",
        ),
        (
            "[families.comand]\npreview_chars = 5000",
            "no family is named 'comand', did you mean `command`",
        ),
        ("stream_bytes = true", "stream_bytes: must be a whole number, not true or false$"),
        ("stream_bytes = 2026-01-01", "stream_bytes: must be a whole number, not date$"),
        ("tools = 5", "tools: must be a mapping of keys, not a number$"),
        ("stream_bytes = " + "9" * 5_000, "not TOML"),
        ("x = " + "[" * 20_000, "not TOML"),
        (
            "[tools.x.budget]\npreview_chars = 0x" + "f" * 9_000,
            "tools.x.budget.preview_chars: must be less than 9223372036854775808$",
        ),
        ('[tools."\\u001b[31m"]\nzork = 1', r"tools.\\x1b\[31m.zork: unknown key `zork`"),
        ("compaction_chars = -1", "compaction_chars: must be at least 0$"),
        (
            "[tools.Bash.error]\ndetail_chars = 1",
            "^tools.Bash.error.detail_chars: unknown key `detail_chars`, did you mean `details_",
        ),
        (
            "[families.command]\npreview_chars = 33_000",
            "families.command: receipt_chars must be at least preview_chars [+] 2000, so that",
        ),
        ("[error]\nmessage_chars = 99", "not a policy"),
        ("[error]\nmessage_chars = 10_001", "not a policy"),
        ("[error]\ndetails_chars = 99", "not a policy"),
        ("[error]\ndetails_chars = 100_001", "not a policy"),
        (
            "[tools.Bash]\nfamilie = 'x'",
            "Bash.familie: unknown key `familie`, did you mean `family`",
        ),
        (
            "[tools.Bash.budget]\nsize = 1",
            "tools.Bash.budget.size: unknown key `size`; known keys: preview_chars, ",
        ),
        ("[tools.Bash]\nfamily = 5", "family: must be text, not a number: put it in quotes$"),
        ("[tools.Bash.budget]\npreview_chars = 'x'", "not a policy"),
    ],
)
def test_a_document_that_is_no_policy_is_refused(text: str, sentence: str) -> None:
    with pytest.raises((InvalidRecordError, NotFoundError), match=sentence) as caught:
        policy_from_toml(text, FAMILIES)
    assert "\n" not in str(caught.value)


def test_a_tool_cannot_be_given_to_a_family_that_is_not_there() -> None:
    with pytest.raises(NotFoundError, match="no family is named 'nobody'"):
        policy_from_toml('[tools.x]\nfamily = "nobody"', FAMILIES)


def test_a_policy_is_completed_with_the_families_it_says_nothing_about() -> None:
    families = foreign(max_items=7)
    policy = DEFAULT_POLICY.covering(families)
    assert policy.families["foreign"] == generic.GenericBudget(max_items=7)
    assert policy.covering(families) is policy
    assert DEFAULT_POLICY.covering(FAMILIES) is DEFAULT_POLICY


def test_a_stored_policy_is_read_back_with_its_digest_also_without_its_families() -> None:
    families = foreign(max_items=7)
    policy = DEFAULT_POLICY.covering(families).for_tool("Bash", preview_chars=2_000)
    assert stored_policy(policy.to_json(), families) == policy
    for known in (FAMILIES, FamilyRegistry(COMMAND), FamilyRegistry(generic.FAMILY)):
        again = stored_policy(policy.to_json(), known)
        assert again.digest == policy.digest
    again = stored_policy(policy.to_json(), FamilyRegistry(COMMAND))
    assert again.budget_of(COMMAND, "Bash") == policy.budget_of(COMMAND, "Bash")


def test_a_stored_policy_with_a_field_that_is_gone_keeps_its_digest_and_its_numbers() -> None:
    policy = DEFAULT_POLICY.for_tool("Bash", preview_chars=2_000)
    document = json.loads(policy.to_json())
    document["inline_bytes"] = document["tools"]["Bash"]["inline_bytes"] = 16_384
    text = canonical_json.encode(document)
    again = stored_policy(text, FAMILIES)
    assert again.digest == digest_of(text)
    assert again.budget_of(COMMAND, "Bash") == policy.budget_of(COMMAND, "Bash")


def test_a_stored_policy_from_before_a_number_came_keeps_its_digest() -> None:
    document = json.loads(DEFAULT_POLICY.to_json())
    del document["families"]["file_mutation"]["max_items"]
    del document["compaction_chars"]
    text = canonical_json.encode(document)
    policy = stored_policy(text, FAMILIES)
    assert policy.digest == digest_of(text) != DEFAULT_POLICY.digest
    assert policy.families == DEFAULT_POLICY.families


def test_a_stored_policy_may_give_a_tool_to_a_family_that_is_gone() -> None:
    policy = DEFAULT_POLICY.model_copy(update={"tools": {"x": ToolPolicy(family="gone")}})
    assert stored_policy(policy.to_json(), FAMILIES).digest == policy.digest


@each_case("text", ["[]", "{}", '{"version":2}', "no JSON", '{"families":{"x":1}}'])
def test_what_is_no_stored_policy_is_refused(text: str) -> None:
    with pytest.raises(InvalidRecordError):
        stored_policy(text, FAMILIES)


def test_a_policy_without_any_family_is_refused() -> None:
    with pytest.raises(ValidationError):
        Policy(families={})
