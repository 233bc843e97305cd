"""Importing sessions of an agent, against `json.loads` of every line; and redacting a stream."""

import json
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from tests.importers.sources import claude_call, claude_line, claude_result, write_lines

from benchmarks._calls import Call, documents_of, made_rounds
from benchmarks._measure import (
    Action,
    Report,
    compare,
    compare_rounds,
    consume,
    cost,
    line,
    scratch_folder,
)
from tooltrail.importers import Importer
from tooltrail.records.digests import digest_of
from tooltrail.redaction import StreamRedactor, default_rules
from tooltrail.store import open_store

CALLS = 600
ROUNDS = 3
_PIECE = 256 << 10
_STREAM_BYTES = 64 << 20


def lines() -> Report:
    """The measurements of imports and of redaction."""
    for name, is_ingested, target in (
        (f"import a session of {CALLS} calls, into the journal", False, "≤ 3"),
        (f"import a session of {CALLS} calls, into the database", True, "≤ 8"),
    ):
        with scratch_folder() as folder:
            times = compare_rounds(_rounds(folder, is_ingested=is_ingested))
        yield cost(name, "json.loads of every line", times, target)
    with scratch_folder() as folder:
        (calls,) = islice(made_rounds(CALLS), 1)
        path = write_lines(folder / "session.jsonl", _session(calls, 0))
        for name, subject in (
            ("read, digest and search every line for secrets, alone", partial(_touch, path)),
            ("make the documents of the calls, alone", partial(_make_documents, calls)),
        ):
            times = compare(subject, partial(_load, path), ROUNDS)
            yield cost(name, "json.loads of every line", times)
    yield _redaction()


def _rounds(folder: Path, *, is_ingested: bool) -> Iterator[tuple[Action, Action]]:
    """For each round, an import into a new store, and the reading of the same file."""
    for number, calls in enumerate(islice(made_rounds(CALLS), ROUNDS + 1)):
        home = folder / str(number)
        home.mkdir()
        path = write_lines(home / "session.jsonl", _session(calls, number))
        if is_ingested:
            open_store(home / "tooltrail.db").close()
        yield (
            partial(_import, home, path, is_ingested=is_ingested),
            partial(_load, path),
        )


def _session(calls: list[Call], number: int) -> Iterator[dict[str, object]]:
    """A session in which each call has an answer of the model before it."""
    for n, call in enumerate(calls):
        text = call.output.decode()
        call_id = f"toolu_{number}_{n}"
        yield claude_line("assistant", [{"type": "text", "text": f"Now step {n}."}], 3 * n)
        yield claude_call(3 * n + 1, call_id, "Bash", call.arguments)
        returned = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
        yield claude_result(3 * n + 2, call_id, text, returned, is_error=False)


def _import(home: Path, path: Path, *, is_ingested: bool) -> None:
    Importer(home / "tooltrail.db-spool", default_rules()).import_file(path)
    if is_ingested:
        with open_store(home / "tooltrail.db") as store:
            store.ingest()


def _load(path: Path) -> None:
    with path.open("rb") as file:
        for one in file:
            json.loads(one)


def _touch(path: Path) -> None:
    """What an import does with every line, in the fewest calls."""
    rules = default_rules()
    with path.open("rb") as file:
        for one in file:
            json.loads(one)
            digest_of(one)
            rules.may_match(one)


def _make_documents(calls: list[Call]) -> None:
    """What the database has of each call, in the fewest calls."""
    consume(map(documents_of, calls))


def _redaction() -> str:
    """The default rules on ordinary output, in megabytes a second, which the target is in, too."""
    calls = next(made_rounds(2_000))
    data = b"".join(call.output for call in calls)
    data *= -(-_STREAM_BYTES // len(data))
    pieces = [data[at : at + _PIECE] for at in range(0, _STREAM_BYTES, _PIECE)]

    def redact() -> None:
        redactor = StreamRedactor(default_rules())
        for piece in pieces:
            redactor.feed(piece)
        redactor.finish()

    times = compare(redact, lambda: None, ROUNDS)
    rate = _STREAM_BYTES / times.subject / 1e6
    return line("redact a stream, megabytes a second", rate, "≥ 100", "-", f"{times.subject:.2f} s")
