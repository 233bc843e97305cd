"""The error for a missing library of the extra `agents`."""

from tooltrail.records import UnavailableError


def missing_extra(error: ImportError) -> UnavailableError:
    """An error that says how to install the missing library."""
    return UnavailableError(
        f"agents need {error.name}, which is not installed: pip install 'tooltrail[agents]'"
    )
