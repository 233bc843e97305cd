"""Four wings, one PEP 420 namespace, and nothing that would break it."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
WINGS = ("store", "artifacts", "migrations", "cli")
MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 60


def sources() -> list[Path]:
    return [path for wing in WINGS for path in (ROOT / wing).rglob("*.py")]


def test_no_wing_claims_the_namespace() -> None:
    for wing in WINGS:
        folder = ROOT / wing / "tooltrail"
        assert [entry.name for entry in folder.iterdir() if entry.is_file()] == []


def test_every_portion_says_that_it_is_typed() -> None:
    for wing in WINGS:
        for package in (ROOT / wing / "tooltrail").iterdir():
            if package.name != "__pycache__":
                assert (package / "py.typed").exists(), package


def test_no_module_grows_without_end() -> None:
    frozen = ROOT / "migrations" / "tooltrail" / "migrations" / "versions"
    for path in sources():
        if path.parent != frozen:
            assert len(path.read_text().splitlines()) <= MAX_MODULE_LINES, path


def test_no_function_grows_without_end() -> None:
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno is not None
                length = node.end_lineno - node.lineno + 1
                documented = ast.get_docstring(node, clean=False)
                length -= len(documented.splitlines()) if documented else 0
                if "versions" not in path.parts:
                    assert length <= MAX_FUNCTION_LINES, f"{path}:{node.lineno}"


def test_no_module_is_named_utils() -> None:
    assert not [path for path in sources() if path.stem.strip("_") in ("utils", "helpers", "misc")]
