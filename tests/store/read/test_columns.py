"""The kinds of columns are those of the tables."""

from typing import Any

import pytest
from sqlalchemy import Boolean, Integer, LargeBinary, Text
from sqlalchemy.types import TypeEngine
from tests.support import schema

from tooltrail.migrations import HEAD_REVISION, statements_of
from tooltrail.store.read.columns import COLUMNS, LARGE_BYTES, Columns, Computed

SPECIAL = {id(schema.Uuid16): "id", id(schema.Moment): "time", id(schema.Sha256): "digest"}
USUAL = {Text: "text", Boolean: "flag", LargeBinary: "bytes", Integer: "integer"}


def kind_of(of: TypeEngine[Any]) -> str:
    found = (name for usual, name in USUAL.items() if isinstance(of, usual))
    return SPECIAL.get(id(of)) or next(found)


@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_a_column_has_the_kind_of_the_table(name: str) -> None:
    table, _, column = name.partition(".")
    defined = schema.metadata.tables[table].c[column]
    kind, may_be_null = COLUMNS[name]
    assert (kind, may_be_null) == (kind_of(defined.type), bool(defined.nullable))


def test_the_size_of_large_outputs_is_that_of_the_index() -> None:
    script = "".join(statements_of(HEAD_REVISION, "sqlite"))
    assert f"WHERE output_size >= {LARGE_BYTES}" in script


def test_values_of_another_kind_are_named_and_replaced() -> None:
    columns = Columns(
        "sessions: key title", Computed("1", "number", "integer"), optional=("tools: name",)
    )
    assert columns.sql == "sessions.key, sessions.title, 1, tools.name"
    values, problems = columns.read(["x", None, None, 7, "behind"])
    assert values == {"key": 0, "title": None, "number": 0, "name": None}
    assert problems == ["key holds no integer", "number holds no integer", "name holds no text"]
