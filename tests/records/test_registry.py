"""Every tool is served by one family."""

import pytest
from tests.support.cases import each_case

from tooltrail.records import (
    Family,
    FamilyRegistry,
    InvalidRecordError,
    NotFoundError,
    catalog,
    default_families,
    default_policy,
    register_family,
)
from tooltrail.records.families import BUILT_IN, command, generic


def family(name: str, *tools: str) -> Family:
    return Family(
        name=name,
        result_types=(generic.GenericOutput,),
        projector=generic.project_generic,
        render=generic.FAMILY.render,
        budget=generic.GenericBudget(),
        tool_names=frozenset(tools),
    )


TOOLS = {
    "child_agent": "Agent SpawnAgent Task delegate spawn_agent",
    "command": "ExecCommand Bash exec_command shell exec",
    "command_batch": "ExecCommandBatch exec_command_batch",
    "file_mutation": (
        "ApplyPatch apply_patch Edit MultiEdit Write NotebookEdit str_replace_editor "
        "edit_file write_file"
    ),
    "file_read": "Read read_file view cat_file",
    "notification": "NotifyOperator notify send_notification",
    "search": "Grep Glob LS grep glob find ls rg",
    "structured_output": "final_answer structured_output submit_result",
    "task_control": "TaskStatus ListTasks TaskStop TaskInput KillShell KillBash",
    "task_output": "TaskOutput BashOutput write_stdin",
    "web_fetch": "WebFetch web_fetch fetch_url",
    "web_search": "WebSearch web_search",
    "work_item": (
        "CompleteWorkItem CreateWorkItem GetWorkItem ListWorkItems PickWorkItem TaskCreate "
        "TaskGet TaskList TaskUpdate TodoRead TodoWrite UpdateWorkItem"
    ),
    "workspace": (
        "Attach AttachWorkspace CreateWorktree EnterWorktree ExitWorktree State Switch "
        "SwitchWorkspace"
    ),
}
"""Names of tools by the family that serves them."""


@each_case("name", [family.name for family in BUILT_IN])
def test_tools_are_served_by_the_family_of_their_kind(name: str) -> None:
    assert {default_families().of_tool(tool).name for tool in TOOLS[name].split()} == {name}


@each_case("tool", ["mcp__github__search", "BASH", "", "Bash ", "no such tool"])
def test_every_other_tool_belongs_to_the_generic_family(tool: str) -> None:
    assert default_families().of_tool(tool) is generic.FAMILY


def test_a_family_is_found_by_its_name() -> None:
    families = default_families()
    assert families.named("command") is command.FAMILY
    assert families.named("generic") is generic.FAMILY
    with pytest.raises(NotFoundError, match="no family is named 'mine'"):
        families.named("mine")


def test_a_registered_family_serves_its_tools_in_its_registry_only() -> None:
    families, mine = default_families(), family("mine", "MyFetch", "MySearch")
    families.register(mine)
    assert families.named("mine") is mine
    assert families.of_tool("MyFetch") is families.of_tool("MySearch") is mine
    assert default_families().of_tool("MyFetch") is generic.FAMILY


def test_a_taken_name_is_refused_and_nothing_changes() -> None:
    families = default_families()
    with pytest.raises(InvalidRecordError, match="the family 'command' is registered already"):
        families.register(family("command", "Other"))
    assert families.of_tool("Other") is generic.FAMILY
    assert families.named("command") is command.FAMILY


def test_a_taken_tool_is_refused_and_nothing_changes() -> None:
    families = default_families()
    with pytest.raises(InvalidRecordError, match=r"another family serves: \['Bash', 'shell'\]"):
        families.register(family("terminal", "shell", "Bash", "Other"))
    assert families.of_tool("Bash") is command.FAMILY
    assert families.of_tool("Other") is generic.FAMILY
    with pytest.raises(NotFoundError):
        families.named("terminal")


@pytest.mark.parametrize(
    "second", [family("one", "B"), family("two", "A"), family("fallback", "B")]
)
def test_a_registry_of_families_that_share_a_name_or_a_tool_is_refused(second: Family) -> None:
    with pytest.raises(InvalidRecordError):
        FamilyRegistry(family("fallback"), family("one", "A"), second)


def test_the_fallback_is_a_family_like_any_other() -> None:
    fallback, one = family("fallback", "Named"), family("one", "A")
    families = FamilyRegistry(fallback, one)
    assert families.named("fallback") is fallback
    assert families.of_tool("Named") is fallback
    assert families.of_tool("anything") is fallback
    assert families.of_tool("A") is one


@pytest.fixture
def only_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten at its end."""
    monkeypatch.setattr(catalog, "_registered", [])


@pytest.mark.usefixtures("only_built_in")
def test_a_family_registered_for_the_process_is_in_every_registry_from_then_on() -> None:
    before = default_families()
    mine = family("mine", "MyTool")
    register_family(mine)
    assert default_families().of_tool("MyTool") is mine
    assert default_policy().families["mine"] == mine.budget
    assert before.find("mine") is None


@pytest.mark.usefixtures("only_built_in")
@pytest.mark.parametrize("taken", [family("command"), family("other", "Bash")])
def test_a_family_that_takes_from_another_is_not_registered_for_the_process(taken: Family) -> None:
    with pytest.raises(InvalidRecordError):
        register_family(taken)
    assert [f.name for f in default_families()] == [f.name for f in (generic.FAMILY, *BUILT_IN)]


def test_a_registry_lists_its_families_the_fallback_first() -> None:
    fallback, one, two = family("fallback"), family("one"), family("two")
    assert [*FamilyRegistry(fallback, one, two)] == [fallback, one, two]
    assert FamilyRegistry(fallback).find("one") is None


def test_every_built_in_family_has_a_type_a_budget_and_a_name_of_its_own() -> None:
    built_in = [*default_families()]
    types = [kind for each in built_in for kind in each.result_types]
    assert len(set(types)) == len(types)
    assert len({id(each.budget) for each in built_in}) == len(built_in)
