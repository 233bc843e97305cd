"""Whether anything waits in a spool is told without a store."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.support.processes import NOBODY, run_python

from tooltrail.store import MessageAdded, new_id
from tooltrail.store.outbox import Outbox
from tooltrail.store.spools import may_wait_in

NAME = "01a20083-693b-7000-8000-000000000000"


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"


def waiting_outbox(spool: Path) -> Outbox:
    outbox = Outbox.of(spool, new_id())
    outbox.append(MessageAdded(session=new_id(), role="user", text="waits"))
    return outbox


def deliver_all(outbox: Outbox) -> None:
    with outbox.journal.delivering(wait=True):
        for file in outbox.journal.seal():
            outbox.journal.remove(file)


def test_nothing_waits_where_there_is_no_spool(spool: Path) -> None:
    assert not may_wait_in(spool)
    spool.mkdir()
    assert not may_wait_in(spool)


def test_nothing_waits_in_what_stays_when_all_is_delivered(spool: Path) -> None:
    outbox = waiting_outbox(spool)
    assert may_wait_in(spool)
    deliver_all(outbox)
    outbox.put_away.keep(b"cannot be read", "it was cut")
    assert outbox.is_there()
    assert not may_wait_in(spool)
    waiting_outbox(spool)
    assert may_wait_in(spool)


@pytest.mark.parametrize("name", ["known-stores/5f", "kept/01a20083/stdout.zst", "owner-1-2"])
def test_what_is_no_output_and_no_record_waits_for_nothing(spool: Path, name: str) -> None:
    path = spool / name
    path.parent.mkdir(parents=True)
    path.touch()
    assert not may_wait_in(spool)


@pytest.mark.parametrize("name", [NAME, f"aside-{NAME}", "else"])
def test_what_any_other_folder_is_the_store_must_say(spool: Path, name: str) -> None:
    (spool / name).mkdir(parents=True)
    assert may_wait_in(spool)


def test_where_nobody_can_tell_something_may_wait(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert may_wait_in(file)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user who may not look")
def test_who_may_not_look_into_an_outbox_is_to_ask_the_store() -> None:
    code = (
        "from pathlib import Path\n"
        "from tooltrail.store.spools import may_wait_in\n"
        "print(may_wait_in(Path(sys.argv[1])))"
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        deliver_all(waiting_outbox(Path(folder)))
        assert run_python(code, folder)[0] == "False\n"
        assert run_python(code, folder, user=NOBODY)[0] == "True\n"


def test_to_ask_that_imports_nothing_of_the_outbox() -> None:
    code = (
        "import sys\n"
        "import tooltrail.store.spools\n"
        "print(*({'sqlalchemy', 'pydantic', 'tooltrail.store._outbox.journal'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "\n"
