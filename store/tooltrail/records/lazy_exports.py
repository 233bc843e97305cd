"""Support for packages whose exports are imported on first use (PEP 562)."""

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module


def lazy_exports(
    package: str, file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the package whose `__init__.py` is `file`.

    The stub beside `file` lists the exports: `from .module import Name` or `from other.package …`.
    """

    @cache
    def modules() -> dict[str, str]:
        import ast  # noqa: PLC0415  a program that imports modules by their names needs no stub

        with open(f"{file}i", encoding="utf-8") as stub:  # noqa: PTH123  pathlib takes 5 ms
            nodes = ast.parse(stub.read()).body
        return {
            alias.name: f"{package}.{node.module}" if node.level else str(node.module)
            for node in nodes
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def get(name: str) -> object:
        if name == "__all__":
            return sorted(modules())
        if name not in modules():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules()[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted({*vars(sys.modules[package]), *modules()})
