"""Opening one artifact for reading a part of it."""

from collections.abc import Generator
from contextlib import contextmanager

from tooltrail.artifacts import ArtifactReader
from tooltrail.cli._artifacts import open_known
from tooltrail.cli._location import Location


@contextmanager
def artifact_reader(
    location: Location, name: str, *, is_checked: bool = False
) -> Generator[ArtifactReader]:
    """A reader of the artifact that a name means; see `find_artifact` for the errors.

    With `is_checked` the digest of the whole is compared first.
    """
    with location.open() as store:
        reader = open_known(store, name)
        if is_checked:
            reader.check()
        yield reader
