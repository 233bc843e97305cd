"""No module imports itself by way of others, type-only imports included."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
WINGS = ("store", "artifacts", "migrations", "cli")


@cache
def modules() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for wing in WINGS:
        for path in (ROOT / wing).rglob("*.py"):
            parts = path.relative_to(ROOT / wing).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(module: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(modules()[module].read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            members = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in modules() else str(node.module) for name in members)


def circles() -> set[frozenset[str]]:
    """The modules of each circle; a module may import from its own packages."""
    graph = {
        module: {name for name in imports(module) if not f"{module}.".startswith(f"{name}.")}
        for module in modules()
    }
    reached = {module: reachable(graph, module) for module in graph}
    together = {
        module: frozenset(other for other in reached[module] if module in reached.get(other, ()))
        for module in graph
    }
    return {members for members in together.values() if members}


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        module = waiting.pop()
        if module in graph and module not in found:
            found.add(module)
            waiting += graph[module]
    return found


def test_no_import_circle() -> None:
    assert [sorted(members) for members in circles()] == []
