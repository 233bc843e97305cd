"""`tooltrail init`: create a store, or report that the store exists."""

import click

from tooltrail.cli._location import Location
from tooltrail.cli._options import store_options
from tooltrail.cli._output import say


@click.command("init")
@store_options
def command(location: Location) -> None:
    """Create a store.

    Without options, the store is an SQLite file in the data folder of the user, with the artifacts
    in a folder beside the file. For a team, pass --db postgresql://… and --artifacts URL. An
    existing store is not changed. `exec` and `session open` do not need `init`: they start a store.
    """
    if (location.artifacts or "").startswith("memory:"):
        raise click.UsageError(
            "artifacts in memory are lost when this command ends; name a folder or a URL"
        )
    from tooltrail.records import StoreExistsError
    from tooltrail.store import create_store

    try:
        with create_store(
            location.database, artifacts=location.artifacts, spool=location.spool
        ) as store:
            say(
                f"created a store in {store.database.target}, artifacts in {store.archive.sink.url}"
            )
    except StoreExistsError:
        # The existing store is opened with its own artifact root, since nothing was moved.
        with location._replace(artifacts=None).open() as store:
            root = store.archive.sink.url
            say(
                f"a store already exists in {store.database.target}, artifacts in {root}; "
                "nothing was changed"
            )
