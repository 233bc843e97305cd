"""What an acknowledged record survives.

| level | the program is killed | the machine loses power | what it costs |
|---|---|---|---|
| `full` | yes | yes | a wait for the disk at each start and each end |
| `process` | yes | all but the last moments | none |

SQLite syncs its log at each commit (`synchronous = EXTRA`, which is `FULL` for a file that has a
log), or only when it moves the log into the database (`NORMAL`, which loses acknowledged rows in a
quarter of the states that a loss of power may leave; see docs/design.md).
PostgreSQL answers a commit when it is on disk (`synchronous_commit = on`), or before (`off`): there
the end of the server itself is like the loss of power. Under either level the store is consistent
afterwards, and what is lost is the newest. Artifacts are synced before they are referred to,
whatever the level, and so is output that waits in the spool.
"""

from typing import Literal, get_args

from tooltrail.records import InvalidRecordError

Durability = Literal["full", "process"]
DURABILITIES: tuple[Durability, ...] = get_args(Durability)


def checked_durability(level: str) -> Durability:
    """The same, when there is such a level.

    Raises:
        InvalidRecordError: there is none.
    """
    for known in DURABILITIES:
        if level == known:
            return known
    raise InvalidRecordError(f"no durability {level!r}; there are {', '.join(DURABILITIES)}")
