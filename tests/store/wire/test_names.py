"""`server___tool`: a namespace and a name in one, split where three underscores stand first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case

from tooltrail.wire import spelled_name, split_name

names = st.text("ab_", min_size=1, max_size=8)
clear = names.filter(lambda name: "___" not in name and not name.endswith("_"))


@each_case(
    ("namespace", "tool_name", "spelled"),
    [
        ("files", "read", "files___read"),
        ("files", "read___all", "files___read___all"),
        ("files", "_read", "files____read"),
        (None, "read", "read"),
        (None, "mcp__files__read", "mcp__files__read"),
        (None, "files___read", "___files___read"),
        (None, "___", "___"),
    ],
)
def test_three_underscores_stand_between_server_and_tool(
    namespace: str | None, tool_name: str, spelled: str
) -> None:
    assert spelled_name(namespace, tool_name) == spelled
    assert split_name(spelled) == (namespace, tool_name)


@given(st.none() | clear, names)
def test_every_namespace_without_three_underscores_comes_back(
    namespace: str | None, tool_name: str
) -> None:
    assert split_name(spelled_name(namespace, tool_name)) == (namespace, tool_name)


@given(names)
def test_every_name_that_a_model_may_write_is_one(name: str) -> None:
    namespace, tool_name = split_name(name)
    assert tool_name
    assert namespace is None or "___" not in namespace


@pytest.mark.parametrize(("namespace", "split"), [("a___b", ("a", "b___t")), ("a_", ("a", "_t"))])
def test_a_namespace_that_has_or_ends_the_separator_is_split_too_early(
    namespace: str, split: tuple[str, str]
) -> None:
    assert split_name(spelled_name(namespace, "t")) == split
