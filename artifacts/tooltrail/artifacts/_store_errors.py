"""What object stores' clients raise, as OSError, in words that hold no secret.

The clients (botocore, aiohttp, gcsfs, azure) share no error class, and their messages may quote
URLs, headers and options. So nothing of a message is taken over: only the kind of the failure, and
the store's code for it or the name of the error's class.
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
    # An exclusive create answers 412 when an object stands there, and Azure 409, which S3 says
    # beside another change of the same object. Who asked looks what is there.
    (FileExistsError, {409, 412}, (), errno.EEXIST, "the object stands there or is being changed"),
    (TimeoutError, {408}, ("Timeout",), errno.ETIMEDOUT, "the store did not answer in time"),
    (ConnectionError, (), ("Connect", "Disconnect"), errno.EIO, "the store cannot be reached"),
    ((), (), ("Credential", "Auth"), errno.EACCES, "no credentials could be used"),
)
"""By class, HTTP status or part of the name of the class, of an error or of what caused it."""


class RangeBeyondEndError(OSError):
    """The range that was asked for starts behind the end of the object."""


@contextlib.contextmanager
def asking() -> Generator[None]:
    """Turn whatever a client raises in the block into OSError."""
    try:
        yield
    except Exception as error:
        raise as_os_error(error) from error


def as_os_error(error: Exception) -> OSError:
    """FileNotFoundError, FileExistsError, PermissionError, TimeoutError, or a plain OSError.

    FileNotFoundError says that the object *or its bucket* is not there. `strerror` is a sentence.
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
    """The HTTP status, where botocore, azure and gcsfs keep it."""
    found = (
        _response(error).get("ResponseMetadata", {}).get("HTTPStatusCode"),
        getattr(error, "status_code", None),
        getattr(error, "code", None),
        # gcsfs says this of a 403 in a message alone.
        403 if type(error) is OSError and str(error).startswith("Forbidden") else None,
    )
    return next((int(str(each)) for each in found if str(each).isdecimal()), None)


def _code(error: Any) -> str | None:
    """The store's own word for the failure, else that of its client."""
    found = _response(error).get("Error", {}).get("Code"), getattr(error, "error_code", None)
    for each in found:
        word = str(getattr(each, "value", each))
        if each is not None and _CODE.fullmatch(word):
            return word
    # Of Python's own errors the name says no more than the sentence.
    return None if type(error).__module__ == "builtins" else type(error).__name__


def _response(error: Any) -> dict[str, Any]:
    response: Any = getattr(error, "response", None)
    is_botocore = isinstance(response, dict)
    return cast("dict[str, Any]", response) if is_botocore else {}
