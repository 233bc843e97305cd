"""Progress lines on a terminal, which never erase output."""

import json
import os
import pty
import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from tests.importers.sources import claude_line, write_lines
from tests.support.call_facts import message, next_id
from tests.support.cli import Cli

from tooltrail.cli import _long_commands
from tooltrail.cli._importing import import_with_bar
from tooltrail.cli._location import Location
from tooltrail.cli._long_commands import share_bar
from tooltrail.cli._output import PROGRESS_LINE, print_array, write_block
from tooltrail.journal import JournalLog


@contextmanager
def screen(file: Path | None = None) -> Generator[Callable[[], str]]:
    """A terminal for stderr of this process, and for stdout unless that is a file.

    Yields:
        A function that returns what was written to the terminal since its last call.
    """
    ours, theirs = pty.openpty()

    def seen() -> str:
        os.write(theirs, b"\0")
        data = b""
        while not data.endswith(b"\0"):
            data += os.read(ours, 65_536)
        return data[:-1].decode().replace("\r\n", "\n")

    with (
        os.fdopen(ours, "rb"),
        os.fdopen(theirs, "w", encoding="utf-8") as err,
        Path(os.ttyname(theirs) if file is None else file).open("w", encoding="utf-8") as out,
        patch.object(sys, "stdout", out),
        patch.object(sys, "stderr", err),
    ):
        yield seen


@pytest.mark.parametrize("is_file", [False, True])
def test_a_bar_erases_no_part_of_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_file: bool
) -> None:
    monkeypatch.setattr(_long_commands, "_REDRAWN_S", 0)

    def rows() -> Generator[dict[str, int]]:
        for n in (1, 2):
            update(n, 2)
            yield {"n": n}

    with screen(tmp_path / "out" if is_file else None) as seen:
        with share_bar("checking") as update:
            print_array(rows())
            update(2, 2)
            write_block(sys.stdout.buffer, b"no newline")
            update(2, 2)
            write_block(sys.stdout.buffer, b"\n")
        shown = seen()
    text = (tmp_path / "out").read_text() if is_file else shown[shown.index("[{") :]
    array, end, _ = text.partition("]\n")
    assert [row["n"] for row in json.loads(array + end)] == [1, 2]
    assert shown.endswith("\x1b[K" if is_file else "no newline\n")
    assert shown.count("checking") == (5 if is_file else 3)


def test_an_import_shows_how_many_bytes_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_long_commands, "_REDRAWN_S", 0)
    path = write_lines(tmp_path / "a.jsonl", [claude_line("user", "go", n) for n in range(4)])
    with screen() as seen:
        import_with_bar(tmp_path / "spool", [path], None, None)
        shares = re.findall(r"(\d+) %", seen())
    assert [*map(int, shares)] == [0, 0, 25, 50, 75, 100]


def test_no_other_thread_draws() -> None:
    with screen() as seen:
        thread = Thread(target=PROGRESS_LINE.draw, args=("work",))
        thread.start()
        thread.join()
        assert seen() == ""


def test_each_run_of_ingestion_has_its_second_and_erases_its_line(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = count(step=2)  # two seconds from each look to the next
    monkeypatch.setattr(_long_commands, "time", SimpleNamespace(monotonic=clock.__next__))
    drawn: list[str] = []
    with screen() as seen, Location(cli.database).open() as store:
        for size in (4, 600, 4):
            JournalLog(store.spool / "journal").record([message(next_id()) for _ in range(size)])
            _ = store.reader
            drawn.append(seen())
    assert drawn == ["", "\ringesting facts  600\x1b[K\r\x1b[K", ""]
