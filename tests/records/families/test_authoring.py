"""A family from outside of the package needs nothing but public names."""

import ast
from pathlib import Path
from typing import Any

import pytest
from tests.records.families import deployments
from tests.records.families.deployments import FAMILY, DeploymentOutput, Step
from tests.records.support import surfaces, whole

from tooltrail.records import CompleteOutput, ToolCall, authoring, catalog, default_policy
from tooltrail.store import create_store, open_store

OUTPUT = DeploymentOutput(
    deployment_id="d-7",
    steps=(Step(host="web\n1", ok=True), *(Step(host=f"db{n}", ok=False) for n in range(40))),
    plan=whole(b'{"to":"v2"}', "plan"),
    log=whole(b"line\n" * 400, "log"),
)


@pytest.fixture(name="_only_built_in")
def only_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten at its end."""
    monkeypatch.setattr(catalog, "_registered", [])


def imported_modules(source: str) -> set[str]:
    modules: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            modules.update(f"{node.module}.{alias.name}" for alias in node.names)
    return modules


def test_a_family_from_outside_imports_the_public_module_alone() -> None:
    modules = imported_modules(Path(deployments.__file__).read_text())
    ours = {name for name in modules if name.startswith("tooltrail")}
    assert ours
    assert {name.rpartition(".")[0] for name in ours} == {"tooltrail.records.authoring"}
    assert not [name for name in modules if "._" in name]


def test_everything_public_there_has_a_name_and_nothing_private_has() -> None:
    names: list[str] = vars(authoring)["__getattr__"]("__all__")
    assert names == sorted(names)
    assert not [name for name in names if name.startswith("_") or not hasattr(authoring, name)]


@pytest.mark.usefixtures("_only_built_in")
def test_a_family_from_outside_is_recorded_through_a_store(tmp_path: Path) -> None:
    authoring.register_family(FAMILY)
    database = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    places: dict[str, Any] = {"artifacts": str(tmp_path / "artifacts"), "spool": tmp_path / "spool"}
    with create_store(database, **places) as store:
        invocation = store.open_session().start(ToolCall(tool_name="Deploy"))
        invocation.finish(CompleteOutput.success("Deploy", OUTPUT))
    with open_store(database, artifacts=places["artifacts"]) as store:
        detail = store.reader.invocation(invocation.id)
    assert detail.summary.family == "deployment"
    assert [role for role, _ in detail.artifacts] == ["log", "hidden"]
    assert detail.receipt is not None
    assert detail.receipt.renderer_name == "deployment"
    assert detail.receipt.text.startswith("Deployment d-7: 41 steps\nok web 1\nfailed db0\n")


def test_what_it_leaves_out_is_published_and_the_receipt_keeps_to_its_budget() -> None:
    families = authoring.default_families()
    families.register(FAMILY)
    output = CompleteOutput.success("Deploy", OUTPUT)
    policy = default_policy(families)
    projection, receipt, _ = surfaces(output, "deployment", policy, families)
    result = projection.canonical.result
    assert result is not None
    assert (result["plan"], result["truncated"], result["step_count"]) == ({"to": "v2"}, True, 41)
    assert [role for role, _ in projection.artifacts] == ["log", "hidden"]
    assert "\n[9 further steps are not shown; listed in sha256/" in receipt.text
    assert receipt.omissions == ()
    assert len(receipt.text) <= 12_000
