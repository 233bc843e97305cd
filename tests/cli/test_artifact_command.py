"""Stored objects: listed, read, cut at either end, described and verified."""

import csv
import io
import resource

import pytest
from tests.support.cli import Cli, on_a_terminal, without_coverage
from tests.support.recording import run_command

from tooltrail.artifacts import Capture

LINES = [b"line %d\n" % n for n in range(1, 30_001)]
TEXT = b"".join(LINES)
MIB = 1024 * 1024


def store_artifact(cli: Cli, data: bytes) -> str:
    """Record a command with this output, and give the path of its artifact."""
    with cli.open() as store, store.open_session() as session:
        finished = run_command(session, data)
        (artifact,) = store.reader.artifacts(invocation=finished.invocation_id)
    return artifact.path


def test_a_page_of_artifacts_says_where_the_next_begins(cli: Cli) -> None:
    paths = sorted(store_artifact(cli, TEXT + b"%d" % number) for number in range(3))
    first = cli.ok("artifact", "ls", "-n", "2", "--json")
    assert first.message == f"2 listed; -n 0 for all, --cursor {paths[1]} for the next\n"
    rest = cli.ok("artifact", "ls", "--json", "--cursor", paths[1])
    assert [one["path"] for one in first.records + rest.records] == paths
    assert rest.message == ""


@pytest.mark.parametrize("columns", [160, 80, 70, 40])
def test_a_listed_artifact_can_be_named_on_a_narrow_terminal(cli: Cli, columns: int) -> None:
    path = store_artifact(cli, TEXT)
    row = on_a_terminal(cli, "artifact", "ls", columns=columns).splitlines()[1]
    assert len(row) <= columns
    assert len(row) <= columns
    shown = row.split()[-1].removesuffix("…")
    assert path.startswith(shown)
    digits = shown.rpartition("/")[2].removesuffix(".zst")
    assert len(digits) >= 12
    assert cli.ok("artifact", "stat", digits).lines[0].split()[-1] == path


def test_ls_lists_what_the_store_refers_to(cli: Cli) -> None:
    path = store_artifact(cli, TEXT)
    header, row = cli.ok("artifact", "ls", "--utc").lines
    assert header.split() == ["SIZE", "STORED", "LINES", "CREATED", "PATH"]
    assert row.split()[:2] == ["319", "kB"]
    assert row.split()[4] == "30,000"
    assert row.endswith(path)
    (record,) = cli.ok("artifact", "ls", "--json").records
    stored = (cli.folder / "artifacts" / path).stat().st_size
    assert record == {
        "schema_version": 1,
        "path": path,
        "digest": f"sha256:{path[-68:-4]}",
        "size": len(TEXT),
        "stored_size": stored,
        "line_count": 30_000,
        "created_at": record["created_at"],
        "damage": None,
    }
    rows = list(csv.DictReader(io.StringIO(cli.ok("artifact", "ls", "--csv").text)))
    assert [row["path"] for row in rows] == [path]
    assert cli.ok("artifact", "ls", "--ndjson", "--fields", "size").text == '{"size": 318894}\n'


def test_ls_of_one_invocation_or_one_session(cli: Cli) -> None:
    first, second = store_artifact(cli, TEXT), store_artifact(cli, TEXT[::-1])
    for scope in ("--invocation", "--session"):
        (row,) = cli.ok("artifact", "ls", "--json", scope, "@last").records
        assert row["path"] == second
    assert {row["path"] for row in cli.ok("artifact", "ls", "--json").records} == {first, second}


def test_too_few_digits_and_no_digits_name_nothing(cli: Cli) -> None:
    for name in ("abc", "a", "xyzw", "sha256:", "sha256:abc", "sha256:ABCD"):
        ended = cli.run("artifact", "cat", name)
        assert (ended.code, ended.stdout) == (2 if "sha256" in name else 3, b"")
        assert repr(name) in ended.sentence


@pytest.mark.parametrize("ending", [b"", b"an unfinished line", b"\0\xff\nno text\xff"])
def test_head_and_tail_print_as_many_lines_as_asked_for(cli: Cli, ending: bytes) -> None:
    path = store_artifact(cli, TEXT + ending)
    lines = [*LINES, *ending.splitlines(keepends=True)]
    for count in (0, 1, 10, 29_999, 30_000, 30_001, 10**9):
        wanted = [b"".join(lines[:count]), b"".join(lines[-count:] if count else [])]
        printed = [
            cli.ok("artifact", verb, path, "-n", str(count)).stdout for verb in ("head", "tail")
        ]
        assert printed == wanted, count
    assert cli.ok("artifact", "head", path).stdout == b"".join(lines[:10])
    assert cli.ok("artifact", "tail", path).stdout == b"".join(lines[-10:])


@pytest.mark.parametrize("verb", ["head", "tail"])
def test_a_giant_line_takes_no_more_memory_than_a_block(cli: Cli, verb: str) -> None:
    with cli.open() as store:
        capture = Capture("big", cli.folder / "big.zst", edge_bytes=10)
        for _ in range(150):
            capture.write(b"x" * MIB)
        capture.write(b"\nend\n")
        path = store.archive.publish(capture.close()).path

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (250 * MIB, 250 * MIB))

    counting = cli.start(
        *("artifact", verb, path, "-n", "1"),
        preexec_fn=limit,
        env=without_coverage(cli.full_environment),
    )
    with counting:
        output, errors = counting.stdout, counting.stderr
        assert output
        assert errors
        size = 0
        while block := output.read(MIB):
            size += len(block)
        assert errors.read() == b""
    assert (counting.returncode, size) == (0, 150 * MIB + 1 if verb == "head" else 4)


def test_an_object_that_the_store_does_not_know_can_be_read_by_its_path(cli: Cli) -> None:
    for data in (b"one\ntwo\nthree", b"one\ntwo\n"):
        with cli.open() as store:
            capture = Capture("big", cli.folder / "big.zst", edge_bytes=10)
            capture.write(data)
            path = store.archive.publish(capture.close()).path
        (cli.folder / "big.zst").unlink()
        lines = data.splitlines(keepends=True)
        assert cli.ok("artifact", "cat", path).stdout == data
        assert cli.ok("artifact", "tail", path, "-n", "1").stdout == lines[-1]
        assert cli.ok("artifact", "verify", path).message.startswith("1 artifact, ")
        (facts,) = cli.ok("artifact", "stat", path, "--json").records
        assert facts == {
            "schema_version": 1,
            "path": path,
            "stored_size": (cli.folder / "artifacts" / path).stat().st_size,
            "referenced_by": [],
        }
    assert cli.ok("artifact", "verify").message == "0 artifacts, 0 B: 0 damaged or missing\n"


def test_stat_says_what_is_known_and_who_refers_to_it(cli: Cli) -> None:
    path = store_artifact(cli, TEXT)
    assert store_artifact(cli, TEXT) == path
    owners = [row["id"] for row in cli.ok("log", "--reverse", "--json").records]
    (facts,) = cli.ok("artifact", "stat", path, "--json").records
    assert facts["referenced_by"] == owners
    assert (facts["size"], facts["line_count"]) == (len(TEXT), 30_000)
    lines = cli.ok("artifact", "stat", path, "--utc").lines
    assert lines[0] == f"path         {path}"
    assert "line count   30000" in lines
    assert f"digest       {facts['digest']}" in lines
    assert f"created at   {facts['created_at'][:19].replace('T', ' ')}Z" in lines
    assert lines[-2:] == [f"referred by  {owner}" for owner in owners]
