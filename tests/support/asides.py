"""Records set aside as `exec` does it, without a command."""

import json
import os
import signal
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tooltrail.records import (
    DEFAULT_POLICY,
    CommandOutput,
    CompleteOutput,
    Policy,
    StartUncertainError,
    StreamRecord,
    ToolCall,
    digest_of,
)
from tooltrail.records.canonical_json import encode
from tooltrail.store import Aside, Store, WantedStore, open_aside

CALL = ToolCall.of("exec", {"argv": ["make", "all"]}, call_id="call 1")


def wanted(store: Store, *, by_id: bool = True) -> WantedStore:
    place = store.database.target.place
    return WantedStore(database=place, id=store.info.id if by_id else None)


def begin_aside(
    spool: Path,
    store: WantedStore,
    *,
    session: str | None = None,
    policy: Policy = DEFAULT_POLICY,
    attempted: StartUncertainError | None = None,
) -> Aside:
    return open_aside(
        [spool],
        CALL,
        wanted=store,
        session=session,
        family="command",
        policy=policy,
        attempted=attempted,
    )


def streams_of(aside: Aside, **contents: bytes) -> dict[str, StreamRecord]:
    found: dict[str, StreamRecord] = {}
    for role in ("stdout", "stderr", "order"):
        capture = aside.capture(role)
        capture.write(contents.get(role, b""))
        found[role] = capture.close().record
    return found


def output_of(streams: dict[str, StreamRecord], exit_status: int = 3) -> CompleteOutput:
    result = CommandOutput(
        command="make all",
        exit_status=exit_status,
        stdout=streams["stdout"],
        stderr=streams["stderr"],
        order=streams["order"],
    )
    return CompleteOutput.success("exec", result)


def set_aside_whole(
    spool: Path,
    store: WantedStore,
    *,
    session: str | None = None,
    policy: Policy = DEFAULT_POLICY,
    attempted: StartUncertainError | None = None,
    **contents: bytes,
) -> Aside:
    """A record with its end; what it printed is given by role."""
    aside = begin_aside(spool, store, session=session, policy=policy, attempted=attempted)
    aside.finish(output_of(streams_of(aside, **contents)))
    return aside


def record_of(aside: Aside) -> dict[str, Any]:
    members: dict[str, Any] = json.loads((aside.folder / "record.json").read_bytes())
    return members


def rewrite_record(aside: Aside, **changes: object) -> None:
    """Another record in its place, with the digest that it must have."""
    members = {**record_of(aside), **changes}
    del members["digest"]
    data = encode({**members, "digest": digest_of(encode(members))})
    (aside.folder / "record.json").write_bytes(data)


@contextmanager
def in_a_fork(task: Callable[[], object]) -> Generator[Callable[[], None]]:
    """Another process that has done something and lives on; gives what kills it."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            kept = task()
            os.write(write, b".")
            signal.pause()
            del kept
        except BaseException:  # noqa: BLE001  a fork must not go on as its parent
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(write)
    alive = [child]

    def kill() -> None:
        while alive:
            os.kill(alive[0], signal.SIGKILL)
            os.waitpid(alive.pop(), 0)

    try:
        assert os.read(read, 1) == b"."
        yield kill
    finally:
        os.close(read)
        kill()
