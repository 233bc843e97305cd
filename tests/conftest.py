"""Fixtures that every wing's tests share: real databases, fresh stores."""

import asyncio
import gc
import os
import signal
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from shutil import disk_usage

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from sqlalchemy import URL
from tests.support import object_stores
from tests.support.effort import EFFORT, times
from tests.support.lossy_server import LossyServer
from tests.support.new_stores import new_store
from tests.support.object_stores import S3Admin, ServerProcess
from tests.support.postgres import fresh_database, running_server

from tooltrail.store.opening import create_store
from tooltrail.store.store import Store

# Hypothesis has chosen its profile `ci` where `CI` is set. With a higher effort, each run needs
# other examples.
_IS_DERANDOMIZED = settings.get_current_profile_name() == "ci" and EFFORT == 1

# How long an example takes says something of the machine only.
settings.register_profile(
    "tooltrail",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=times(25),
    derandomize=_IS_DERANDOMIZED,
)
settings.load_profile("tooltrail")
if _IS_DERANDOMIZED:
    # Examples also use constants of the modules that are imported, and these depend on which tests
    # a worker ran before.
    pytest.MonkeyPatch().setattr(providers, "_get_local_constants", Constants)


_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 4 << 30

if "TMPDIR" not in os.environ and _MEMORY.is_dir() and disk_usage(_MEMORY).free >= _ROOM_BYTES:
    # Temporary files in memory: most of the time of a test would be that of its syncs.
    os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)


def pytest_configure() -> None:
    """Undo what a background job or nohup hands down, since the tests send these signals.

    A shell starts background jobs with SIGINT and SIGQUIT ignored, children inherit that, and a
    script cannot even trap a signal that was ignored when it started.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            handler = signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
            signal.signal(number, handler)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test each engine in turn if the test is part of the contract of stores."""
    is_marked = metafunc.definition.get_closest_marker("both_engines") is not None
    if is_marked and "database" in metafunc.fixturenames:
        metafunc.parametrize("database", ["sqlite", "postgresql"], indirect=True)


def pytest_collection_finish() -> None:
    """Leave the collected tests out of what Python's collector goes through ever after."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[URL]:
    with running_server() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: URL) -> Iterator[str]:
    with fresh_database(postgres_server) as url:
        yield url


@pytest.fixture
def lossy(postgres_url: str) -> Iterator[LossyServer]:
    """An empty place on a server that can be gone before it answers."""
    with LossyServer(postgres_url).running() as server:
        yield server


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place for a store: a file, or with the mark `both_engines` each engine in turn."""
    if getattr(request, "param", "sqlite") == "postgresql":
        url: str = request.getfixturevalue("postgres_url")
        return url
    return str(tmp_path / "trail.db")


@pytest.fixture
def store(database: str, tmp_path: Path) -> Iterator[Store]:
    """A new store in this place."""
    with new_store(database, tmp_path) as created:
        yield created


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[Store]:
    """A fresh store in a file, where the engine makes no difference."""
    with new_store(str(tmp_path / "trail.db"), tmp_path) as created:
        yield created


@pytest.fixture
def postgres_store(postgres_url: str, tmp_path: Path) -> Iterator[Store]:
    """A fresh store on a server, where nothing is to be tried on a file."""
    with create_store(postgres_url, artifacts=str(tmp_path / "a"), spool=tmp_path / "s") as created:
        yield created


@pytest.fixture(scope="session")
def s3_server() -> Iterator[ServerProcess]:
    """A server that speaks S3, for all tests of this worker; each makes buckets of its own."""
    import botocore.session

    # Each new sink would read the description of S3 from files, which takes most of its time.
    load_once = cache(botocore.session.create_loader)
    with pytest.MonkeyPatch.context() as patch, object_stores.s3_server().running() as server:
        patch.setattr(botocore.session, "create_loader", load_once)
        yield server


@pytest.fixture(scope="session")
def s3_admin(s3_server: ServerProcess) -> S3Admin:
    """Looks at the server from behind."""
    return S3Admin(s3_server.url)


@pytest.fixture
def s3_bucket(s3_server: ServerProcess, s3_admin: S3Admin, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty bucket; the environment leads to it, in processes that the test starts too."""
    for name, value in object_stores.s3_environment(s3_server.url).items():
        monkeypatch.setenv(name, value)
    bucket = f"bucket-{uuid.uuid4()}"
    s3_admin.make_bucket(bucket)
    return bucket


@pytest.fixture(autouse=True)
def no_event_loop_is_left() -> Iterator[None]:
    """Close the event loop that a framework made for this thread and did not close."""
    yield
    with warnings.catch_warnings(action="ignore"):
        try:
            loop = asyncio.get_event_loop()
        except RuntimeError:  # there is none
            return
    loop.close()
    asyncio.set_event_loop(None)
