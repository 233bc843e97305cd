"""Who asks a store by the standard library alone leaves no file that is in others' way."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.processes import NOBODY, run_python
from tests.support.template_stores import make_store

from tooltrail.store import (
    Store,
    look_up_artifact,
    look_up_newest,
    look_up_store_id,
    open_store,
)

AS_ANOTHER = """
import sys
from tooltrail.store import look_up_artifact, look_up_newest, look_up_store_id

found = look_up_newest(sys.argv[1], limit=5)
print(found is not None, look_up_store_id(sys.argv[1]), look_up_artifact(sys.argv[1], "sha256"))
"""

takes_root = pytest.mark.skipif(os.geteuid() != 0, reason="it takes root to become another user")


@pytest.fixture
def shared() -> Iterator[Path]:
    """A store that nobody has open, in a folder in which everybody may make files."""
    with tempfile.TemporaryDirectory(prefix="tooltrail-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        with make_store(folder / "trail.db") as store:
            store.open_session()
        yield folder / "trail.db"


def names_beside(database: Path) -> set[str]:
    return {path.name for path in database.parent.iterdir()}


def test_nothing_stays_beside_a_store_that_nobody_has_open(shared: Path) -> None:
    before = names_beside(shared)
    assert look_up_newest(str(shared), limit=5) is not None
    assert look_up_store_id(str(shared)) is not None
    assert look_up_artifact(str(shared), "sha256") is None
    assert names_beside(shared) == before


def test_what_others_use_stays(shared: Path) -> None:
    with open_store(shared) as store:
        store.open_session()
        during = names_beside(shared)
        assert {"trail.db-wal", "trail.db-shm"} <= during
        assert look_up_newest(str(shared), limit=5) is not None
        assert names_beside(shared) == during
        assert sessions_of(store) == 2


def sessions_of(store: Store) -> int:
    return store.reader.counts().sessions


@takes_root
def test_another_who_may_write_leaves_nothing_of_its_own(shared: Path) -> None:
    shared.chmod(0o666)
    before = names_beside(shared)
    said, _ = run_python(AS_ANOTHER, str(shared), user=NOBODY)
    assert said.startswith("True ")
    assert names_beside(shared) == before


@takes_root
def test_another_who_may_only_read_leaves_it_to_who_has_words_for_it(shared: Path) -> None:
    shared.chmod(0o644)
    before = names_beside(shared)
    said, _ = run_python(AS_ANOTHER, str(shared), user=NOBODY)
    assert said == "False None None\n"
    assert names_beside(shared) == before


@takes_root
def test_another_who_may_only_read_sees_what_is_open_already(shared: Path) -> None:
    shared.chmod(0o644)
    with open_store(shared) as store:
        store.open_session()
        during = names_beside(shared)
        said, _ = run_python(AS_ANOTHER, str(shared), user=NOBODY)
        assert said == f"True {store.info.id} None\n"
        assert names_beside(shared) == during
        store.open_session()
        assert sessions_of(store) == 3
