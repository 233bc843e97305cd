"""Reading the bytes behind a name."""

from collections.abc import Generator

import pytest
from tests.support.cli import Cli
from tests.support.recording import run_command

from tooltrail.cli import _texts
from tooltrail.cli._texts import Text, print_output, texts_of


class Source:
    """Blocks of bytes that know whether they are open."""

    def __init__(self) -> None:
        self.is_open = False

    def blocks(self) -> Generator[bytes]:
        self.is_open = True
        try:
            yield b"one\n"
            yield b"two\n"
        finally:
            self.is_open = False


def test_the_first_lines_close_the_source() -> None:
    source = Source()
    kept = source.blocks()  # a reference keeps the garbage collector away
    assert list(Text("", lambda: kept).head(1)) == [b"one\n"]
    assert not source.is_open


def test_output_that_cannot_be_printed_closes_the_source(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source()
    kept = source.blocks()

    def fail(*_: object) -> None:
        next(kept)
        raise BrokenPipeError

    monkeypatch.setattr(_texts, "copy_blocks", fail)
    with cli.open() as store, store.open_session() as session:
        finished = run_command(session, b"x")
        _, detail = texts_of(store, str(finished.invocation_id), None)
        with pytest.raises(BrokenPipeError):
            print_output(store, [Text("stdout", lambda: kept)], detail, None)
    assert not source.is_open
