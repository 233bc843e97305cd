"""The work and the messages of `tooltrail artifact relocate`."""

from dataclasses import asdict
from typing import Any

from tooltrail.cli._long_commands import amount_of, interruptible, progress_bar
from tooltrail.cli._output import printable, say, write
from tooltrail.store import Amount, RelocationReport, Store, relocate


def relocate_with_bar(
    store: Store, new_root: str, *, allow_damage: bool, delete_old: bool
) -> RelocationReport:
    """Relocate the artifacts with a progress bar; if interrupted, print the current root."""
    total = store.reader.counts().artifact_count
    try:
        with interruptible(), progress_bar("copying", total) as update:
            return relocate(
                store,
                new_root,
                allow_damage=allow_damage,
                delete_old=delete_old,
                on_progress=update,
            )
    except KeyboardInterrupt:
        say(f"interrupted; the artifacts are in {store.archive.sink.url}")
        raise


def record_of(report: RelocationReport) -> dict[str, Any]:
    """The report as one flat record."""
    record: dict[str, Any] = {}
    for name, value in asdict(report).items():
        if isinstance(getattr(report, name), Amount):
            record |= {f"{name}_count": value["count"], f"{name}_bytes": value["stored_bytes"]}
        else:
            record[name] = value
    return record


def print_problems(report: RelocationReport) -> None:
    """Print one line for every damaged or missing artifact."""
    for path in report.damaged:
        write(f"damaged    {printable(path)}\n")
    for path in report.missing:
        write(f"missing    {printable(path)}\n")


def say_outcome(report: RelocationReport) -> None:
    """Print what was copied, and where the artifacts are now, on stderr."""
    say(
        f"copied {amount_of(report.copied)}; {amount_of(report.sound)} verified at the new root; "
        f"{len(report.damaged):,} damaged, {len(report.missing):,} missing"
    )
    if not report.switched:
        say(
            f"not relocated: the artifacts stay in {report.root_before}; "
            "pass --allow-damage to relocate anyway"
        )
        return
    say(f"the artifacts are in {report.root_after}")
    if report.deleted.count:
        say(f"deleted {amount_of(report.deleted)} in {report.root_before}")
