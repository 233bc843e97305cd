"""What agents need beyond the core, and what is said where it is not installed."""

from tooltrail.records import UnavailableError


def missing_extra(error: ImportError) -> UnavailableError:
    """The error of a library that is not there."""
    return UnavailableError(
        f"agents need {error.name}, which is not installed: pip install 'tooltrail[agents]'"
    )
