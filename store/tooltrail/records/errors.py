"""Every error that Tooltrail raises on purpose, branched by what the caller does next.

    TooltrailError
    ├── NotFoundError (LookupError)           ask for something else
    │   ├── AmbiguousNameError                choose one of `candidates`
    │   └── StoreNotFoundError                create the store first
    ├── InvalidRecordError (ValueError)       mend the input; the same call fails again
    │   ├── PathEscapeError                   a path that leaves the artifact root
    │   ├── StoreExistsError                  there is a store already
    │   ├── SessionClosedError                open another session
    │   └── InvocationFinishedError           an invocation is finished once
    ├── DamageError                           stored bytes are not what was stored
    │   ├── DigestMismatchError
    │   ├── IndexMismatchError                the content is right, and its index is not
    │   └── MissingArtifactError
    ├── SchemaMismatchError                   run `tooltrail db upgrade`, or a newer program
    └── UnavailableError                      try again later: locked, full, unreachable
        ├── AccessRefusedError                mend the user, the password or the database's name
        └── DiskFullError                     make room first

Messages are lower-case sentences that name the object. They never hold a password or tool output.
"""

from collections.abc import Sequence

_NAMED = 4
"""Differences in one message."""


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
        first = "; ".join(differences[:_NAMED])
        rest = len(differences) - _NAMED
        more = f"; and {rest:,} more" if rest > 0 else ""
        super().__init__(f"artifact {path} differs from its description: {first}{more}", path=path)
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
