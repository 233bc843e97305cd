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
    existing store is not changed; if --artifacts names another root than its own, the exit code is
    2. Without `init`, the first command that records starts a store.
    """
    if (location.artifacts or "").startswith("memory:"):
        raise click.UsageError(
            "artifacts in memory are lost when this command ends; name a folder or a URL"
        )
    from tooltrail.artifacts import defer_sink
    from tooltrail.records import StoreExistsError
    from tooltrail.store import create_store
    from tooltrail.store.roots import named_root, real_root

    try:
        with create_store(
            location.database, artifacts=location.artifacts, spool=location.spool
        ) as store:
            say(
                f"created a store in {store.database.target}, artifacts in {store.archive.sink.url}"
            )
            return
    except StoreExistsError:
        pass
    # The existing store is opened with its own artifact root, since nothing was moved.
    with location._replace(artifacts=None).open() as store:
        root, named = store.archive.sink.url, location.artifacts
        say(
            f"a store already exists in {store.database.target}, artifacts in {root}; "
            "nothing was changed"
        )
    if named is not None and real_root(defer_sink(named_root(named)).url) != real_root(root):
        raise click.UsageError(f"{named} is not its artifact root; `artifact relocate` moves there")
