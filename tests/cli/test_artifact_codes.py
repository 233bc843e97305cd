"""What each `artifact` command exits with for a name that is none, two, lost, or damaged."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.cli import Cli
from tests.support.recording import run_command

UNKNOWN = "5ff0119b" * 8
COMMANDS = {
    "cat": ("cat", "{}"),
    "cat --bytes": ("cat", "{}", "--bytes", "0:9"),
    "cat --lines": ("cat", "{}", "--lines", "1:2"),
    "head": ("head", "{}"),
    "tail": ("tail", "{}"),
    "tail -f": ("tail", "-f", "{}"),
    "grep": ("grep", "line", "{}"),
    "grep -c": ("grep", "-c", "line", "{}"),
    "grep --json": ("grep", "--json", "line", "{}"),
    "stat": ("stat", "{}"),
    "verify": ("verify", "{}"),
}
"""All commands that take the name of an artifact."""

TWINS = (3, 78)
"""Seeds of two outputs whose digests begin with the same four digits."""


def artifact_of(cli: Cli, seed: int) -> str:
    """The path of a new artifact."""
    with cli.open() as store, store.open_session() as session:
        finished = run_command(session, b"line of %d\n" % seed * 9_000)
        (artifact,) = store.reader.artifacts(invocation=finished.invocation_id)
    return artifact.path


def object_of(cli: Cli, path: str) -> Path:
    return cli.folder / "artifacts" / path


def unknown_digest(cli: Cli) -> str:
    artifact_of(cli, 0)
    return f"sha256:{UNKNOWN}"


def unknown_path(cli: Cli) -> str:
    artifact_of(cli, 0)
    return f"sha256/{UNKNOWN[:2]}/{UNKNOWN}.zst"


def unknown_beginning(cli: Cli) -> str:
    digits = artifact_of(cli, 0)[-68:-4]
    return "0" * 12 if not digits.startswith("0000") else "1" * 12


def ambiguous_beginning(cli: Cli) -> str:
    """Four digits with which two digests begin."""
    (beginning,) = {artifact_of(cli, seed)[-68:-64] for seed in TWINS}
    return beginning


def without_object(cli: Cli) -> str:
    path = artifact_of(cli, 0)
    object_of(cli, path).unlink()
    return path


def damaged(cli: Cli) -> str:
    path = artifact_of(cli, 0)
    stored = object_of(cli, path)
    data = bytearray(stored.read_bytes())
    data[12] ^= 0xFF
    stored.chmod(0o600)
    stored.write_bytes(data)
    return path


def away(cli: Cli) -> str:
    """An artifact whose disk is not mounted: the folder for it is there, and empty."""
    path = artifact_of(cli, 0)
    root = cli.folder / "artifacts"
    root.rename(cli.folder / "disk")
    root.mkdir()
    return path


@pytest.mark.parametrize(
    ("name_in", "code"),
    [
        (unknown_digest, 3),
        (unknown_path, 3),
        (unknown_beginning, 3),
        (ambiguous_beginning, 2),
        (without_object, 4),
        (damaged, 1),
        (away, 5),
    ],
)
def test_every_command_exits_with_the_code_of_what_is_wrong(
    cli: Cli, name_in: Callable[[Cli], str], code: int
) -> None:
    name = name_in(cli)
    for command, words in COMMANDS.items():
        ended = cli.run("artifact", *(word.format(name) for word in words))
        if (command, name_in) == ("stat", damaged):
            assert ended.code == 0  # it reads nothing of the object
            continue
        assert ended.code == code, command
        if command == "verify" and code in (1, 4, 5):
            assert name in ended.text
            state = {1: "damaged", 4: "missing", 5: "unreadable"}[code]
            assert ended.message.endswith(f": 1 {state}\n")
        else:
            assert ended.sentence
