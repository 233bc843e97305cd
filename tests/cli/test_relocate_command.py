"""`tooltrail artifact relocate`: moves, verifies, and says what holds now."""

import os
import signal
import time
from pathlib import Path

import pytest
from tests.support.cli import HANG_S, Cli, on_a_terminal
from tests.support.keeping import accounts, ingested

BIG = b"a line of a long output\n" * 5_000
POLL_S = 0.001
"""Between two looks at a folder, which would else take the processor from who makes it."""


@pytest.fixture
def old(cli: Cli) -> Path:
    """The artifact root of a store with two artifacts."""
    with cli.open() as store:
        ingested(store, BIG, BIG[1:])
    return cli.folder / "artifacts"


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return tmp_path / "elsewhere"


def test_the_artifacts_are_used_at_the_new_root(cli: Cli, old: Path, new: Path) -> None:
    ended = cli.ok("artifact", "relocate", str(new))
    assert ended.text == ""
    copied, where = ended.message.splitlines()
    assert copied.startswith("copied and verified 2 objects, ")
    assert copied.endswith(
        "; 0 objects, 0 B were there already and are intact; 0 damaged, 0 missing"
    )
    assert where == f"the artifacts are in file://{new}"
    old.rename(old.with_name("away"))
    assert cli.ok("artifact", "verify").message.startswith("2 artifacts, ")
    (status,) = cli.ok("status", "--json").records
    assert status["artifact_root"] == f"file://{new}"


def test_delete_old_deletes_what_has_arrived(cli: Cli, old: Path, new: Path) -> None:
    ended = cli.ok("artifact", "relocate", str(new), "--delete-old")
    assert ended.message.splitlines()[-1].startswith("deleted 2 objects, ")
    assert list(old.rglob("*.zst")) == []
    cli.ok("artifact", "verify")


def test_an_empty_root_is_wrong_usage(
    cli: Cli, old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    ended = cli.run("artifact", "relocate", "")
    assert ended.code == 2
    assert ended.usage_error == "NEW_ROOT is empty; name a folder or a URL"
    assert list((tmp_path / "here").iterdir()) == []
    (status,) = cli.ok("status", "--json").records
    assert status["artifact_root"] == f"file://{old}"


def test_json_is_one_record(cli: Cli, old: Path, new: Path) -> None:
    size = sum(file.stat().st_size for file in old.rglob("*.zst"))
    (record,) = cli.ok("artifact", "relocate", str(new), "--json").records
    run_id = record.pop("run_id")
    assert len(run_id) == 36
    assert record == {
        "schema_version": 1,
        "root_before": f"file://{old}",
        "root_after": f"file://{new}",
        "copied_count": 2,
        "copied_bytes": size,
        "sound_count": 0,
        "sound_bytes": 0,
        "damaged": [],
        "missing": [],
        "switched": True,
        "deleted_count": 0,
        "deleted_bytes": 0,
    }


@pytest.mark.parametrize(("kind", "code"), [("damaged", 1), ("missing", 4)])
def test_what_is_wrong_is_named_and_nothing_is_changed_until_it_is_allowed(
    cli: Cli, old: Path, new: Path, kind: str, code: int
) -> None:
    wrong = min(old.rglob("*.zst"))
    data = wrong.read_bytes()
    wrong.unlink()
    if kind == "damaged":
        wrong.write_bytes(data[:-1])
    line = f"{kind:10} {wrong.relative_to(old)}"

    ended = cli.run("artifact", "relocate", str(new))

    assert (ended.code, ended.lines) == (code, [line])
    assert ended.message.splitlines()[-1] == (
        f"not relocated: the artifacts stay in file://{old}; pass --allow-damage to relocate anyway"
    )
    moved = cli.run("artifact", "relocate", str(new), "--allow-damage")
    assert (moved.code, moved.lines) == (code, [line])
    assert moved.message.splitlines()[-1] == f"the artifacts are in file://{new}"
    assert cli.run("artifact", "verify").code == code


def test_a_root_that_cannot_be_is_wrong_usage(cli: Cli, old: Path) -> None:
    for root in (str(old), "memory://x", "nosuch://x"):
        assert cli.run("artifact", "relocate", root).code == 2


def test_a_root_that_cannot_be_made_is_unavailable(cli: Cli, old: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert cli.run("artifact", "relocate", str(tmp_path / "file" / "root")).code == 5


def test_ctrl_c_leaves_the_store_where_it_was_and_an_account(
    cli: Cli, old: Path, new: Path
) -> None:
    evidence = old / "damaged"
    evidence.mkdir()
    for number in range(1_500):
        (evidence / f"{number:064x}-00112233.zst").write_bytes(b"%d" % number)
    with cli.start("artifact", "relocate", str(new)) as process:
        while len(list(new.rglob("*.zst"))) < 3:
            assert process.poll() is None
            time.sleep(POLL_S)
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=HANG_S)
    assert process.returncode == 130
    assert errors.decode() == f"interrupted; the artifacts are in file://{old}\n"
    with cli.open() as store:
        assert accounts(store)[-1][1]["switched"] is False
        assert store.archive.sink.url == f"file://{old}"


def test_a_terminal_shows_a_bar(cli: Cli, old: Path, new: Path) -> None:
    seen = on_a_terminal(cli, "artifact", "relocate", str(new), columns=200)
    assert "copying" in seen
    assert seen.splitlines()[-1].endswith(f"the artifacts are in file://{new}")
