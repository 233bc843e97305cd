"""The packages give their exports when they are first used."""

from importlib import import_module

import pytest
from tests.support.cases import each_case

LAZY = [
    *("tooltrail.agents", "tooltrail.workspace", "tooltrail.journal", "tooltrail.records"),
    *("tooltrail.records.authoring", "tooltrail.store", "tooltrail.wire"),
    "tooltrail.wire.text_fallback",
]


@each_case("name", LAZY)
def test_every_export_is_there_and_listed(name: str) -> None:
    package = import_module(name)
    assert package.__all__
    for export in package.__all__:
        assert getattr(package, export) is getattr(package, export)
    assert set(package.__all__) <= set(dir(package))


@each_case("name", LAZY)
def test_a_name_that_is_not_exported_is_no_attribute(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = import_module(name).nothing
