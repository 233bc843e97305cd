from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.process.harness import Driver, Terminal


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    return Driver(tmp_path)


@pytest.fixture
def open_terminal() -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(*argv: str) -> Terminal:
        opened.append(Terminal(*argv))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()
