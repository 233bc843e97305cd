"""Every error that Tooltrail raises deliberately, grouped by what the caller can do next.

    TooltrailError
    ├── NotFoundError (LookupError)           ask for something else
    │   ├── AmbiguousNameError                choose one of `candidates`
    │   └── StoreNotFoundError                create the store first
    ├── InvalidRecordError (ValueError)       correct the input; the same call fails again
    │   ├── PathEscapeError                   a path that leaves the artifact root
    │   ├── StoreExistsError                  there is a store already
    │   ├── SessionClosedError                open another session
    │   └── InvocationFinishedError           an invocation can be finished only once
    ├── DamageError                           stored bytes were cut, altered or lost
    │   ├── DigestMismatchError
    │   ├── IndexMismatchError                the content is right, but its index is wrong
    │   └── MissingArtifactError
    ├── SchemaMismatchError                   run `tooltrail db upgrade`, or a newer program
    └── UnavailableError                      try again later: locked, full, unreachable
        ├── AccessRefusedError                correct the user, the password or the database's name
        └── DiskFullError                     free disk space first

Messages are lower-case sentences that name the object. They never hold a password or tool output.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import NoneType

_NAMED = 4
"""Most differences that one message lists."""


class TooltrailError(Exception):
    """The root of every error in this package."""


class NotFoundError(TooltrailError, LookupError):
    """Nothing in the store has this name."""


class AmbiguousNameError(NotFoundError):
    """A shortened name fits more than one record.

    Attributes:
        name: the name that was asked for.
        candidates: the first `MOST_CANDIDATES` full ids that the name fits, newest first.
    """

    MOST_CANDIDATES = 5

    def __init__(self, name: str, candidates: Sequence[str]) -> None:
        self.name = name
        self.candidates = tuple(candidates[: self.MOST_CANDIDATES])
        more = ", and more" if len(candidates) > self.MOST_CANDIDATES else ""
        super().__init__(f"{name!r} is ambiguous: it fits {', '.join(self.candidates)}{more}")


class StoreNotFoundError(NotFoundError):
    """There is no Tooltrail store at this location."""


class InvalidRecordError(TooltrailError, ValueError):
    """A record that breaks the contract; the message says which part."""


class PathEscapeError(InvalidRecordError):
    """An artifact path that is absolute, not normalised, or leaves the artifact root."""


class StoreExistsError(InvalidRecordError):
    """A store cannot be created, because there is one already."""


class SessionClosedError(InvalidRecordError):
    """A closed session accepts no further records."""


class InvocationFinishedError(InvalidRecordError):
    """The invocation already has its final state; it can be finished only once."""


class DamageError(TooltrailError):
    """Stored bytes are cut, altered or missing.

    Attributes:
        path: the artifact path or file that is damaged.
    """

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


class DigestMismatchError(DamageError):
    """The content of an object does not match its digest."""


class IndexMismatchError(DamageError):
    """An object's index, or its database row, does not match the object.

    Attributes:
        differences: all differences, one sentence each: which index, which frame, what was found
            and what was expected. The message has only the first ones.
    """

    def __init__(self, path: str, differences: Sequence[str]) -> None:
        first = "; ".join(differences[:_NAMED])
        rest = len(differences) - _NAMED
        more = f"; and {rest:,} more" if rest > 0 else ""
        super().__init__(f"artifact {path} differs from its description: {first}{more}", path=path)
        self.differences = tuple(differences)


class MissingArtifactError(DamageError):
    """A reference points at an object that does not exist."""


class SchemaMismatchError(TooltrailError):
    """The store's schema has another revision than the one that this program needs.

    Attributes:
        found: the revision of the store; None if it has none.
        expected: the revision that this program reads and writes.
    """

    def __init__(self, message: str, *, found: str | None, expected: str) -> None:
        super().__init__(message)
        self.found = found
        self.expected = expected


class UnavailableError(TooltrailError):
    """The database, the disk or the object store is unavailable now; a retry may succeed."""


class AccessRefusedError(UnavailableError):
    """The server is reachable, but refuses this user or has no such database.

    If several servers are listed, every one refused: an unreachable one might have accepted.
    """


class DiskFullError(UnavailableError):
    """The disk of the database has no room for a record."""


def check_type(name: str, value: object, *kinds: type) -> None:
    """Raise `InvalidRecordError` if an argument, such as `call`, has none of the types."""
    # A bool is an int in Python.
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds if kind is not NoneType)
        raise InvalidRecordError(f"{name} must be of type {wanted}, not {type(value).__name__}")


@contextmanager
def unavailable_if_failing(problem: str) -> Generator[None]:
    """Turn an `OSError` of the block into an `UnavailableError` that begins with `problem`."""
    try:
        yield
    except OSError as error:
        raise UnavailableError(f"{problem}: {error.strerror or error}") from error
