"""Translate the errors of object stores' clients to OSError, without secrets in the message.

The clients (botocore, aiohttp, gcsfs, azure) share no error class, and their messages may quote
URLs, headers and options. So no message is copied. The new message has the kind of the failure, and
the store's error code or the name of the error's class.
"""

import contextlib
import errno
import re
from collections.abc import Collection, Generator, Iterator, Sequence
from typing import Any, cast

_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._]{0,60}")


_Meaning = tuple[type[Exception] | tuple[()], Collection[int], Collection[str], int, str]
_MEANINGS: tuple[_Meaning, ...] = (
    (FileNotFoundError, {404}, (), errno.ENOENT, "the bucket or the object is not there"),
    (PermissionError, {401, 403}, (), errno.EACCES, "access was refused"),
    # An exclusive create of an existing object gets 412, or 409 from Azure. S3 sends 409 during
    # another change of the object. The caller must check whether the object exists.
    (FileExistsError, {409, 412}, (), errno.EEXIST, "the object exists or is being changed"),
    (TimeoutError, {408}, ("Timeout",), errno.ETIMEDOUT, "the store did not answer in time"),
    (ConnectionError, (), ("Connect", "Disconnect"), errno.EIO, "the store cannot be reached"),
    ((), (), ("Credential", "Auth"), errno.EACCES, "no credentials could be used"),
)
"""Kinds of failures: error class, HTTP status, or part of the class name, also of a cause."""


class RangeBeyondEndError(OSError):
    """The requested range starts beyond the end of the object."""


@contextlib.contextmanager
def translating_errors() -> Generator[None]:
    """Translate each error of a client in the block to OSError."""
    try:
        yield
    except Exception as error:
        raise as_os_error(error) from error


def as_os_error(error: Exception) -> OSError:
    """Translate an error to an OSError: not found, exists, permission, timeout, or a plain one.

    FileNotFoundError means that the object *or its bucket* is missing. `strerror` is a sentence.
    """
    chain = list(_chain(error))
    status = next(filter(None, map(_status, chain)), None)
    number, sentence = _meaning(chain, status)
    code = next(filter(None, map(_code, chain)), None)
    text = f"{sentence} ({code})" if code else sentence
    return RangeBeyondEndError(number, text) if status == 416 else OSError(number, text)


def _meaning(chain: Sequence[Exception], status: int | None) -> tuple[int, str]:
    for kind, statuses, words, number, sentence in _MEANINGS:
        if status in statuses:
            return number, sentence
        for error in chain:
            if isinstance(error, kind) or any(word in type(error).__name__ for word in words):
                return number, sentence
    return errno.EIO, "the store answered with an error"


def _chain(error: BaseException | None) -> Iterator[Any]:
    while error is not None:
        yield error
        error = error.__cause__


def _status(error: Any) -> int | None:
    """The HTTP status of an error of botocore, azure or gcsfs."""
    found = (
        _response(error).get("ResponseMetadata", {}).get("HTTPStatusCode"),
        getattr(error, "status_code", None),
        getattr(error, "code", None),
        # gcsfs reports a 403 only in the message.
        403 if type(error) is OSError and str(error).startswith("Forbidden") else None,
    )
    return next((int(str(each)) for each in found if str(each).isdecimal()), None)


def _code(error: Any) -> str | None:
    """The error code of the store, else the class name of the client's error."""
    found = _response(error).get("Error", {}).get("Code"), getattr(error, "error_code", None)
    for each in found:
        word = str(getattr(each, "value", each))
        if each is not None and _CODE.fullmatch(word):
            return word
    # The name of a built-in error adds nothing to the sentence.
    return None if type(error).__module__ == "builtins" else type(error).__name__


def _response(error: Any) -> dict[str, Any]:
    response: Any = getattr(error, "response", None)
    is_botocore = isinstance(response, dict)
    return cast("dict[str, Any]", response) if is_botocore else {}
