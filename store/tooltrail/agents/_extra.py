"""What agents need beyond the core, and what is said where it is not installed."""

from tooltrail.records import InvalidRecordError


def missing_extra(error: ImportError) -> InvalidRecordError:
    """The error of a library that is not there."""
    return InvalidRecordError(
        f"agents need {error.name}, which is not installed: pip install 'tooltrail[agents]'"
    )
