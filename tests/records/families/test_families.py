"""Every tool is served by one family."""

import pytest

from tooltrail.records import (
    Family,
    FamilyRegistry,
    InvalidRecordError,
    NotFoundError,
    default_families,
)
from tooltrail.records.families import command, generic


def family(name: str, *tools: str) -> Family:
    return Family(
        name=name,
        result_type=generic.GenericOutput,
        projector=generic.project_generic,
        renderer=generic.GenericRenderer(),
        tool_names=frozenset(tools),
    )


@pytest.mark.parametrize("tool", ["ExecCommand", "Bash", "exec_command", "shell", "exec"])
def test_commands_belong_to_the_command_family(tool: str) -> None:
    assert default_families().of_tool(tool) is command.FAMILY


@pytest.mark.parametrize("tool", ["mcp__github__search", "bash", "", "Bash ", "no such tool"])
def test_every_other_tool_belongs_to_the_generic_family(tool: str) -> None:
    assert default_families().of_tool(tool) is generic.FAMILY


def test_a_family_is_found_by_its_name() -> None:
    families = default_families()
    assert families.named("command") is command.FAMILY
    assert families.named("generic") is generic.FAMILY
    with pytest.raises(NotFoundError, match="no family is named 'web'"):
        families.named("web")


def test_a_registered_family_serves_its_tools_in_its_registry_only() -> None:
    families, web = default_families(), family("web", "WebFetch", "WebSearch")
    families.register(web)
    assert families.named("web") is web
    assert families.of_tool("WebFetch") is families.of_tool("WebSearch") is web
    assert default_families().of_tool("WebFetch") is generic.FAMILY


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
