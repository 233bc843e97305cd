"""Every error that Tooltrail raises on purpose, branched by what the caller does next.

    TooltrailError
    ├── NotFoundError (LookupError)           ask for something else
    │   ├── AmbiguousNameError                choose one of `candidates`
    │   └── StoreNotFoundError                create the store first
    ├── InvalidRecordError (ValueError)       mend the input; the same call fails again
    │   ├── PathEscapeError                   a path that leaves the artifact root
    │   ├── StoreExistsError                  there is a store already
    │   ├── SessionClosedError                open another session
    │   ├── InvocationFinishedError           an invocation is finished once
    │   └── IdempotencyConflictError          the key names something else; choose another
    ├── DamageError                           stored bytes are not what was stored
    │   ├── DigestMismatchError
    │   ├── IndexMismatchError                the content is right; what is told of it is not
    │   └── MissingArtifactError
    ├── SchemaMismatchError                   run `tooltrail db upgrade`, or a newer program
    └── UnavailableError                      try again later: locked, full, unreachable
        ├── AccessRefusedError                mend the user, the password or the database's name
        ├── DiskFullError                     make room first
        ├── StartUncertainError               the start may be in the store
        ├── EndUncertainError                 the end may be; `finish` once more tells
        └── RecordUncertainError              both may be; with a key, `record` once more tells

Messages are lower-case sentences that name the object. They never hold a password or tool output.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

_TOLD = 4
"""Differences in one message."""

_SHOWN_CHARS = 80
"""Characters of a key in a message."""


class TooltrailError(Exception):
    """The root of every error in this package."""


class NotFoundError(TooltrailError, LookupError):
    """Nothing in the store has this name."""


class AmbiguousNameError(NotFoundError):
    """A shortened name fits more than one record.

    Attributes:
        name: what was asked for.
        candidates: full ids that it fits, newest first; at most a handful are listed.
    """

    def __init__(self, name: str, candidates: Sequence[str]) -> None:
        super().__init__(f"{name!r} is ambiguous: it fits {', '.join(candidates)}")
        self.name = name
        self.candidates = tuple(candidates)


class StoreNotFoundError(NotFoundError):
    """There is no Tooltrail store at this place."""


class InvalidRecordError(TooltrailError, ValueError):
    """A record that breaks the contract; the message says which part."""


class PathEscapeError(InvalidRecordError):
    """An artifact path that is absolute, not normalised, or leaves the artifact root."""


class StoreExistsError(InvalidRecordError):
    """A store was to be created where there is one."""


class SessionClosedError(InvalidRecordError):
    """A closed session takes no further records."""


class InvocationFinishedError(InvalidRecordError):
    """An invocation goes from started to its final state once."""


class IdempotencyConflictError(InvalidRecordError):
    """An idempotency key names a record with other content than it is asked for now.

    Attributes:
        key: that was given.
        kind: what it names: `session` or `invocation`.
        subject_id: of what it names.
        recorded: fingerprint of what it names.
        given: fingerprint of what was to be recorded.
    """

    def __init__(
        self, *, key: str, kind: str, subject_id: "UUID", recorded: str, given: str
    ) -> None:
        super().__init__(
            f"idempotency key {key[:_SHOWN_CHARS]!a} names {kind} {subject_id} with fingerprint "
            f"{recorded}; what was given has {given}"
        )
        self.key = key
        self.kind = kind
        self.subject_id = subject_id
        self.recorded = recorded
        self.given = given


class DamageError(TooltrailError):
    """Stored bytes are cut, altered or missing.

    Attributes:
        path: the artifact path or file that is damaged.
    """

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


class DigestMismatchError(DamageError):
    """The content of an object is not what its name promises."""


class IndexMismatchError(DamageError):
    """An index of an object, or its row, tells something else of it than what is there.

    Attributes:
        differences: which index, which frame, what was found and what was expected; each one a
            sentence, and all of them. The message has the first ones.
    """

    def __init__(self, path: str, differences: Sequence[str]) -> None:
        first = "; ".join(differences[:_TOLD])
        rest = len(differences) - _TOLD
        more = f"; and {rest:,} more" if rest > 0 else ""
        super().__init__(f"artifact {path} is not as it is told: {first}{more}", path=path)
        self.differences = tuple(differences)


class MissingArtifactError(DamageError):
    """A reference points at an object that is not there."""


class SchemaMismatchError(TooltrailError):
    """The store's schema is of another revision than this program's.

    Attributes:
        found: the revision of the store, None when it has none.
        expected: the revision that this program reads and writes.
    """

    def __init__(self, message: str, *, found: str | None, expected: str) -> None:
        super().__init__(message)
        self.found = found
        self.expected = expected


class UnavailableError(TooltrailError):
    """The database, the disk or the object store cannot serve now; a retry may succeed."""


class AccessRefusedError(UnavailableError):
    """The server is there, and does not let this user in or has no such database.

    Of several that are named one by one none does: one that is not there may be the right one.
    """


class DiskFullError(UnavailableError):
    """The disk of the database has no room for a record."""


class StartUncertainError(UnavailableError):
    """The store went away while it was committing a start, and nobody knows whether it has.

    To start the call once more makes another record of it, beside the one that there may be. Where
    this is given to `open_aside`, what is set aside of the call has the id of that start, and both
    are one record.

    Attributes:
        invocation_id: that the start has, if it is in the store.
        folder: of the invocation in the spool. Unless the spool could not be written, either, it
            is claimed there, so that `repair` ends the start when the program is gone.
    """

    def __init__(self, message: str, *, invocation_id: "UUID", folder: "Path") -> None:
        super().__init__(message)
        self.invocation_id = invocation_id
        self.folder = folder


class EndUncertainError(UnavailableError):
    """The store went away while it was committing an end, and nobody knows whether it has.

    To finish the invocation once more is safe, and finds out.

    Attributes:
        invocation_id: of the invocation, which is in the store for sure.
    """

    def __init__(self, message: str, *, invocation_id: "UUID") -> None:
        super().__init__(message)
        self.invocation_id = invocation_id


class RecordUncertainError(UnavailableError):
    """The store went away while it was committing calls that had ended, and nobody knows.

    To record them once more is safe where they have idempotency keys, and finds out; without, it
    makes further records beside those that there may be.

    Attributes:
        invocation_ids: that the calls have, if they are in the store; all of them or none.
    """

    def __init__(self, message: str, *, invocation_ids: "Sequence[UUID]") -> None:
        super().__init__(message)
        self.invocation_ids = tuple(invocation_ids)
