"""The command batch family: several commands in one call, run one after the other.

A command that ran is `completed`, even if it exited with 1. A command that could not be run is
`failed`, one that was not allowed is `rejected`, and one that was not reached is `skipped`.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, islice
from typing import Annotated, ClassVar, Literal, Self, get_args

from pydantic import Field, model_validator

from tooltrail.records._model import Message, Record
from tooltrail.records.budgets import Budget, PreviewChars, ReceiptChars
from tooltrail.records.command_documents import seconds, worded_end
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.families._shared import (
    NAME_CHARS,
    SENTENCE_CHARS,
    Json,
    Number,
    artifact_lines,
    bound_texts,
    bounded,
    entry,
    hidden_lines,
    joined,
    json_of,
    one_line,
)
from tooltrail.records.families.command import (
    CommandOutput,
    bound_command,
    command_roles,
    encodable,
    printed_texts,
)
from tooltrail.records.family import Family
from tooltrail.records.readable_json import readable
from tooltrail.records.streams import StreamRecord

ItemStatus = Literal["completed", "failed", "rejected", "skipped"]
_STATUSES: tuple[ItemStatus, ...] = get_args(ItemStatus)


class CommandBatchBudget(Budget):
    """Bounds of the command batch family: the previews of all items share `preview_chars`."""

    item_chars: ClassVar[int] = 1_100

    preview_chars: PreviewChars = 32_000
    receipt_chars: ReceiptChars = 70_000
    max_items: Annotated[int, Field(ge=1, le=64)] = 32


class BatchItem(Record):
    """One command of a batch.

    Attributes:
        cmd: the command line, as a shell would spell it.
        result: how the command ended; present exactly if it is completed. The roles of its streams
            begin with the number of the item, for example `1.stdout`.
        error_kind: a `snake_case` word; present exactly if the command failed or was rejected.
        error_message: the error in one sentence; present like `error_kind`.
    """

    cmd: str
    status: ItemStatus
    result: CommandOutput | None = None
    error_kind: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")] | None = None
    error_message: Message | None = None
    duration_ms: Number | None = None

    @model_validator(mode="after")
    def _check_status(self) -> Self:
        if (self.result is not None) != (self.status == "completed"):
            raise ValueError("an item has a result exactly when it is completed")
        failed = self.status in ("failed", "rejected")
        if (self.error_kind is not None, self.error_message is not None) != (failed, failed):
            raise ValueError("an item has an error exactly when it failed or was rejected")
        return self


class CommandBatchOutput(FamilyOutput):
    """All commands of a batch, and whether to skip those after an unsuccessful one."""

    stop_on_error: bool = False
    items: tuple[BatchItem, ...] = ()

    def summary(self) -> str:
        """The number of commands that ran."""
        ran = sum(item.result is not None for item in self.items)
        noun = "command" if len(self.items) == 1 else "commands"
        return f"{ran:,} of {len(self.items):,} {noun} completed"


def project_command_batch(
    result: CommandBatchOutput, budget: CommandBatchBudget, cutter: Cutter
) -> Json:
    """Bound each command, with all previews in one budget. The counts include all items."""
    count = cutter.fitting(map(_printed, result.items), budget)
    shown = cutter.items("items", result.items, count)
    printed = [*map(_printed, shown)]
    shares = iter(cutter.shares([*chain.from_iterable(printed)], budget.preview_chars))
    rooms = [sum(islice(shares, len(streams))) for streams in printed]
    items = [
        _project_item(item, n, room, cutter)
        for n, (item, room) in enumerate(zip(shown, rooms, strict=True))
    ]
    seen = Counter(item.status for item in result.items)
    counts = {f"{status}_count": seen[status] for status in _STATUSES}
    return bounded(result, cutter, item_count=len(result.items), items=items, **counts)


def _printed(item: BatchItem) -> Sequence[StreamRecord]:
    if item.result is None:
        return ()
    streams = (item.result.stdout, item.result.stderr, item.result.combined)
    return [stream for stream in streams if stream is not None]


def _project_item(item: BatchItem, n: int, room: int, cutter: Cutter) -> Json:
    """One command, bounded; the artifacts of its streams are in its result."""
    field = f"items[{n}]"
    named = bound_texts(item, field, {"error_message": SENTENCE_CHARS}, cutter)
    completed = None
    if item.result is not None:
        completed = bound_command(item.result, room, cutter.beside(), f"{field}.result.")
    cmd = cutter.text(f"{field}.cmd", encodable(item.cmd), NAME_CHARS)
    return entry(named, index=n + 1, cmd=cmd, result=completed)


def render_command_batch(canonical: CanonicalResult, budget: CommandBatchBudget) -> str:
    """Render how many commands ran, then the outcome and the output of each."""
    batch = json_of(canonical)
    items = batch["items"]
    count = f"{batch['completed_count']:,}/{batch['item_count']:,}"
    text = f"{one_line(canonical.tool_name)} completed {count} items\n"
    printed = [printed_texts(item.get("result", {})) for item in items]
    pairs = chain.from_iterable(texts.values() for texts in printed)
    bodies = iter(readable(pairs, budget.spare_chars))
    for item, texts in zip(items, printed, strict=True):
        text += joined([_item_line(item)])
        text += "".join(joined([f"{heading}:\n{next(bodies)}"]) for heading in texts)
        text += "\n" if texts else ""
    return joined([text.removesuffix("\n"), *_hidden_lines(batch)], _artifact_lines(batch))


def _item_line(item: Json) -> str:
    """The columns, separated by more white space than a label can contain."""
    outcome: str = item["status"]
    if "result" in item:
        outcome = worded_end(item["result"], f"exit={item['result']['exit_status']}")
    elif "error_kind" in item:
        outcome += f" ({item['error_kind']}): {one_line(item['error_message'])}"
    columns = [f"[{item['index']}] {one_line(item['cmd'])}", outcome]
    if "duration_ms" in item:
        columns.append(seconds(item["duration_ms"]))
    return "    ".join(columns)


def _hidden_lines(batch: Json) -> list[str]:
    seen = Counter(item["status"] for item in batch["items"])
    hidden = {status: batch[f"{status}_count"] - seen[status] for status in _STATUSES}
    detail = ", ".join(f"{count:,} {status}" for status, count in hidden.items() if count > 0)
    return hidden_lines(batch, batch["item_count"] - len(batch["items"]), "item", detail)


def _artifact_lines(batch: Json) -> list[str]:
    results = [(item["result"], f"{item['index']}.") for item in batch["items"] if "result" in item]
    lines = [artifact_lines(result, command_roles(result, prefix)) for result, prefix in results]
    return [*chain.from_iterable(lines), *artifact_lines(batch)]


FAMILY = Family(
    name="command_batch",
    result_types=(CommandBatchOutput,),
    projector=project_command_batch,
    render=render_command_batch,
    budget=CommandBatchBudget(),
    tool_names=frozenset({"ExecCommandBatch", "exec_command_batch"}),
    version=2,
)
