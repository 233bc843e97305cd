"""How recovery is told: what can be repaired, what was, and which exit code that is."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._output import counted, print_records, printable, say, size_of
from tooltrail.records.errors import TooltrailError, UnavailableError
from tooltrail.store import (
    CutOffAnswer,
    Delivery,
    Repairable,
    RepairedFolder,
    RepairReport,
    Store,
    acknowledge_losses,
    find_repairable,
    is_waiting,
)


def say_recoverable(store: Store, also: Sequence[Path]) -> None:
    """One line on stderr when there is something to repair, or when that cannot be found out.

    Who reads a store is told, and never kept from it.
    """
    try:
        # The artifacts are not asked whether they are back: one that hangs would keep the reader.
        outbox = is_waiting(store, also=also)
        sentence = waiting_sentence(find_repairable(store, also=also), outbox=outbox)
    except UnavailableError as error:
        sentence = f"what needs repair is unknown: {error}"
    except TooltrailError:
        return  # the command meets it, too
    if sentence:
        say(f"tooltrail: {sentence}")


def waiting_sentence(found: Repairable, *, outbox: bool = False) -> str:
    """What there is to repair, each kind that there is; empty when there is nothing."""
    kinds = (
        (found.killed, "invocation", " of killed programs"),
        (found.waiting, "invocation", " with output that waits for the artifacts"),
        (found.leftover, "invocation", " ended with something left in the spool"),
        (found.set_aside, "record", " set aside"),
        (found.answers, "answer", " of models cut off by a kill"),
    )
    told = [f"{counted(len(ids), noun)}{what}" for ids, noun, what in kinds if ids]
    if outbox:
        told.append("records wait in the outbox")
    return f"{'; '.join(told)}: `tooltrail repair`" if told else ""


def summary_of(report: RepairReport, *, dry_run: bool) -> Iterator[str]:
    """The report in sentences."""
    outcomes = Counter(one.outcome for one in report.folders)
    acted = "would be " if dry_run else ""
    yield from _outbox_summary(report.outbox, dry_run=dry_run)
    if outcomes["stored"]:
        waited = counted(outcomes["stored"], "invocation")
        yield f"output of {waited} {acted}stored that had waited for the artifacts"
    if outcomes["recorded"]:
        aside = counted(outcomes["recorded"], "invocation")
        yield f"{aside} {acted}recorded that had been set aside while the store was away"
    yield (
        f"{counted(outcomes['interrupted'], 'invocation')} {acted}ended as interrupted, "
        f"{size_of(sum(one.recovered_bytes for one in report.folders))} {acted}recovered, "
        f"{outcomes['running']:,} running"
    )
    yield from _answer_summary(report.answers, acted)
    if outcomes["waiting"]:
        yield f"{counted(outcomes['waiting'], 'invocation')} of killed programs in the outbox still"
    if outcomes["failed"]:
        yield f"{counted(outcomes['failed'], 'invocation')} could not be repaired now"
    if report.elsewhere_count:
        yield (
            f"{counted(report.elsewhere_count, 'invocation')} not ended and not in this "
            "spool: running elsewhere, or killed there"
        )
    if outcomes["unreadable"]:
        unreadable = counted(outcomes["unreadable"], "record")
        yield f"{unreadable} set aside and not as it was written: left"
    if outcomes["foreign"]:
        yield f"{counted(outcomes['foreign'], 'record')} set aside for another store: left"


def print_report(report: RepairReport, style: str, chosen: str | None) -> None:
    """Print for programs what became of each invocation, and what was put away of the outbox.

    A record of the outbox that cannot be delivered has no id here, since it may be none that can be
    read; its outcome is `undeliverable`. Nor has an answer, which is no invocation.
    """
    folders = [asdict(one) for one in report.folders]
    nothing = {"invocation_id": None, "recovered_bytes": 0, "lost_bytes": 0}
    kept = [
        {
            **nothing,
            "outcome": "undeliverable",
            "reason": f"line {one.line:,} of {one.file}: {one.reason}",
            "kept_in": one.kept_in,
        }
        for one in report.outbox.kept
    ]
    answers = [
        {
            **nothing,
            "outcome": "unreadable" if one.problem else "answer",
            "recovered_bytes": one.byte_count,
            "reason": one.problem or f"message {one.message_id}",
            "kept_in": None,
        }
        for one in report.answers
    ]
    names = [field.name for field in fields(RepairedFolder)]
    print_records([*folders, *answers, *kept], style, chosen, names=names)


def say_acknowledged(store: Store, also: Sequence[Path]) -> None:
    """Acknowledge what was lost so far, and say where it is now."""
    for folder in acknowledge_losses(store, also=also):
        say(f"what was dropped, or could not be delivered, moved to {printable(str(folder))}")


def _answer_summary(answers: Sequence[CutOffAnswer], acted: str) -> Iterator[str]:
    if taken := [one for one in answers if not one.problem]:
        size = size_of(sum(one.byte_count for one in taken))
        cut_off = f"{counted(len(taken), 'answer')} of models cut off by a kill"
        yield f"{cut_off} {acted}recorded, {size}"
    for one in answers:
        if one.problem:
            yield printable(f"what came of message {one.message_id} is left: {one.problem}")


def _outbox_summary(outbox: Delivery, *, dry_run: bool) -> Iterator[str]:
    if count := outbox.delivered_count:
        yield f"{counted(count, 'record')} of the outbox stored"
    for one in outbox.kept:
        yield printable(
            f"line {one.line:,} of {one.file} cannot be stored: {one.reason}; kept in {one.kept_in}"
        )
    yield from map(printable, outbox.notes)
    if count := outbox.waiting_count:
        waits = counted(count, "record")
        would = f"{waits} of the outbox would be stored"
        yield would if dry_run else f"{waits} still in the outbox: {printable(outbox.failure)}"
    elif outbox.failure:
        yield f"records may wait in the outbox: {printable(outbox.failure)}"


def code_of_report(report: RepairReport) -> ExitCode:
    """Unavailable when something could not be repaired now, incomplete when something is left."""
    outcomes = {one.outcome for one in report.folders}
    if "failed" in outcomes or report.outbox.failure:
        return ExitCode.UNAVAILABLE
    is_left = outcomes & {"unknown", "unreadable"} or any(one.kept_in for one in report.folders)
    if report.outbox.kept or any(one.problem for one in report.answers):
        return ExitCode.INCOMPLETE
    return ExitCode.INCOMPLETE if is_left else ExitCode.OK
