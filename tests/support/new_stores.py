"""New stores for tests. One in a file is a copy, which is quicker than to create the store."""

import shutil
import tempfile
from functools import cache
from pathlib import Path

from tooltrail.store.creating import create
from tooltrail.store.engines.targets import SqliteTarget, parse_target
from tooltrail.store.opening import open_store
from tooltrail.store.roots import remembered_root
from tooltrail.store.store import Store

_DATABASE = "trail.db"
_ROOT = "artifacts"


@cache
def _template() -> tempfile.TemporaryDirectory[str]:
    """The folder of an empty store, which lasts as long as this process."""
    folder = tempfile.TemporaryDirectory(prefix="tooltrail-template-")
    create(
        parse_target(Path(folder.name, _DATABASE)),
        str(Path(folder.name, _ROOT)),
        Path(folder.name, "spool"),
    )
    return folder


def make_store(database: str, folder: Path) -> None:
    """Make an empty store, with the artifacts in a folder. All copies have the same id."""
    target = parse_target(database)
    root = str(folder / _ROOT)
    if not isinstance(target, SqliteTarget) or remembered_root(target, root) != _ROOT:
        create(target, root, folder / "spool")
        return
    template = Path(_template().name)
    shutil.copytree(template / _ROOT, folder / _ROOT)
    shutil.copy(template / _DATABASE, target.path)


def new_store(database: str, folder: Path) -> Store:
    """Make an empty store and open it, with artifacts and spool in a folder."""
    make_store(database, folder)
    return open_store(database, spool=folder / "spool", create=False)
