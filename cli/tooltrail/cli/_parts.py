"""Opening one artifact for reading a part of it, by the shortest way there is.

A whole process should not take longer than the reading. So the store is asked for one row before
anything heavy is imported, and only when that does not answer is it opened as everywhere else.
"""

from collections.abc import Generator
from contextlib import contextmanager

from tooltrail.artifacts import ArtifactReader, defer_sink, open_reader
from tooltrail.cli._artifact_names import parse_name
from tooltrail.cli._location import Location
from tooltrail.store.lookup import look_up_artifact


@contextmanager
def artifact_reader(
    location: Location, name: str, *, is_checked: bool = False
) -> Generator[ArtifactReader]:
    """A reader of the artifact that a name means; see `find_artifact` for the errors.

    With `is_checked` the digest of the whole is compared first.
    """
    path, _ = parse_name(name)
    place = None if location.artifacts else look_up_artifact(location.database, path)
    if place is not None:
        sink = defer_sink(place.root, mark=place.mark)
        yield _checked(open_reader(sink, place.path, size=place.size), is_checked)
        return
    from tooltrail.cli._artifacts import open_known  # noqa: PLC0415  heavy

    with location.open() as store:
        yield _checked(open_known(store, name), is_checked)


def _checked(reader: ArtifactReader, is_checked: bool) -> ArtifactReader:
    if is_checked:
        reader.check()
    return reader
