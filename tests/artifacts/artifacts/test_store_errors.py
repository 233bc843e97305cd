"""Errors of the stores' own clients become the right kind of OSError, without their messages."""

import errno
from typing import Any

import pytest

from tooltrail.artifacts._store_errors import RangeBeyondEndError, as_os_error, translating_errors

SECRET = "https://host/object?X-Amz-Signature=hunter2"


def botocore_error(code: str, status: int) -> Exception:
    from botocore.exceptions import ClientError

    untyped: Any = ClientError
    answer = {
        "Error": {"Code": code, "Message": SECRET},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    error: Exception = untyped(answer, "PutObject")
    return error


def botocore_failure(name: str, **details: str) -> Exception:
    from botocore import exceptions

    error: Exception = getattr(exceptions, name)(**details)
    return error


def google_error(code: int) -> Exception:
    from gcsfs.retry import HttpError

    untyped: Any = HttpError
    error: Exception = untyped({"code": code, "message": SECRET})
    return error


def azure_error(name: str, status: int, code: str | None) -> Exception:
    from azure.core import exceptions

    error: Any = getattr(exceptions, name)(SECRET)
    error.status_code = status
    error.error_code = code
    made: Exception = error
    return made


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


MISSING = "the bucket or the object is not there"
STANDS = "the object exists or is being changed"
AWAY = "the store cannot be reached"
LATE = "the store did not answer in time"
NO_KEY = "no credentials could be used"


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (botocore_error("NoSuchBucket", 404), FileNotFoundError, f"{MISSING} (NoSuchBucket)"),
        (botocore_error("404", 404), FileNotFoundError, f"{MISSING} (404)"),
        (botocore_error("AccessDenied", 403), PermissionError, "access was refused (AccessDenied)"),
        (botocore_error("PreconditionFailed", 412), FileExistsError, f"{STANDS} (Precon"),
        (botocore_error("SlowDown", 503), OSError, "answered with an error (SlowDown)"),
        # s3fs, when the answer names no condition.
        (
            caused(OSError(errno.EINVAL, SECRET), botocore_error("PreconditionFailed", 412)),
            FileExistsError,
            f"{STANDS} (PreconditionFailed)",
        ),
        (botocore_failure("NoCredentialsError"), PermissionError, f"{NO_KEY} (NoCredentialsError)"),
        (
            botocore_failure("EndpointConnectionError", endpoint_url=SECRET),
            OSError,
            f"{AWAY} (EndpointConnectionError)",
        ),
        (
            botocore_failure("ReadTimeoutError", endpoint_url=SECRET),
            TimeoutError,
            f"{LATE} (ReadTimeoutError)",
        ),
        (google_error(401), PermissionError, "access was refused (HttpError)"),
        (google_error(503), OSError, "the store answered with an error (HttpError)"),
        (OSError(f"Forbidden: {SECRET}"), PermissionError, "access was refused"),
        (azure_error("ResourceExistsError", 409, "BlobAlreadyExists"), FileExistsError, STANDS),
        (
            azure_error("ResourceNotFoundError", 404, "ContainerNotFound"),
            FileNotFoundError,
            f"{MISSING} (ContainerNotFound)",
        ),
        (
            azure_error("HttpResponseError", 500, SECRET),
            OSError,
            "the store answered with an error (HttpResponseError)",
        ),
        (caused(RuntimeError(SECRET), ConnectionRefusedError(SECRET)), OSError, AWAY),
        (FileExistsError(SECRET), FileExistsError, STANDS),
        (FileNotFoundError(SECRET), FileNotFoundError, MISSING),
        (TimeoutError(SECRET), TimeoutError, LATE),
        (ValueError(SECRET), OSError, "the store answered with an error"),
    ],
)
def test_a_failure_is_told_by_its_kind_and_its_code_alone(
    error: Exception, kind: type[OSError], words: str
) -> None:
    told = as_os_error(error)
    assert type(told) is kind
    assert words in str(told.strerror)
    assert "hunter2" not in str(told)
    assert told.filename is None


@pytest.mark.parametrize(
    "error",
    [
        botocore_error("InvalidRange", 416),
        google_error(416),
        azure_error("HttpResponseError", 416, "InvalidRange"),
    ],
)
def test_a_range_beyond_the_end_is_told_apart(error: Exception) -> None:
    assert type(as_os_error(error)) is RangeBeyondEndError


def test_what_is_asked_for_fails_with_its_cause() -> None:
    cause = google_error(404)
    with pytest.raises(FileNotFoundError) as caught, translating_errors():
        raise cause
    assert caught.value.__cause__ is cause


def test_an_interrupt_is_left_alone() -> None:
    with pytest.raises(KeyboardInterrupt), translating_errors():
        raise KeyboardInterrupt
