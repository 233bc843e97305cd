"""The command batch family: several commands in one call, run one after the other.

A command that ran is `completed`, even if it exited with 1. A command that could not be run is
`failed`, one that was not allowed is `rejected`, and one that was not reached is `skipped`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
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
    Milliseconds,
    artifact_lines,
    artifact_roles,
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
    command_roles,
    encodable,
    printed_texts,
    project_completed,
)
from tooltrail.records.family import Family
from tooltrail.records.readable_json import readable
from tooltrail.records.streams import StreamRecord, iter_streams

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
        status: the outcome of the command.
        result: how the command ended; present exactly if it is completed. The roles of its streams
            must begin with the number of the item, for example `1.stdout`.
        error_kind: a `snake_case` word; present exactly if the command failed or was rejected.
        error_message: the error in one sentence; present like `error_kind`.
        duration_ms: run time of the command.
    """

    cmd: str
    status: ItemStatus
    result: CommandOutput | None = None
    error_kind: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")] | None = None
    error_message: Message | None = None
    duration_ms: Milliseconds | None = None

    @model_validator(mode="after")
    def _check_status(self) -> Self:
        if (self.result is not None) != (self.status == "completed"):
            raise ValueError("an item has a result exactly when it is completed")
        failed = self.status in ("failed", "rejected")
        if (self.error_kind is not None, self.error_message is not None) != (failed, failed):
            raise ValueError("an item has an error exactly when it failed or was rejected")
        return self


class CommandBatchOutput(FamilyOutput):
    """The complete result of a batch.

    Attributes:
        stop_on_error: whether the items after an unsuccessful one should be skipped.
        items: all commands, in order.
    """

    stop_on_error: bool = False
    items: tuple[BatchItem, ...] = ()

    @model_validator(mode="after")
    def _check_roles(self) -> Self:
        for n, item in enumerate(self.items, 1):
            for stream in iter_streams(item.result):
                if not stream.role.startswith(f"{n}."):
                    raise ValueError(f"the roles of the streams of item {n} must begin with {n}.")
        return self

    def count(self, status: ItemStatus) -> int:
        """The number of items with this status."""
        return sum(item.status == status for item in self.items)

    def summary(self) -> str:
        """The number of commands that ran."""
        noun = "command" if len(self.items) == 1 else "commands"
        return f"{self.count('completed'):,} of {len(self.items):,} {noun} completed"


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
    counts = {f"{status}_count": result.count(status) for status in _STATUSES}
    return bounded(result, cutter, item_count=len(result.items), items=items, **counts)


def _printed(item: BatchItem) -> list[StreamRecord]:
    if item.result is None:
        return []
    streams = (item.result.stdout, item.result.stderr, item.result.combined)
    return [stream for stream in streams if stream is not None]


def _project_item(item: BatchItem, n: int, room: int, cutter: Cutter) -> Json:
    """One command, bounded; the artifacts of its streams are in its result."""
    field = f"items[{n}]"
    named = bound_texts(item, field, {"error_message": SENTENCE_CHARS}, cutter)
    completed = None
    if item.result is not None:
        prefix = f"{field}.result."
        completed = project_completed(item.result, room, NAME_CHARS, cutter.beside(), prefix=prefix)
    cmd = cutter.text(f"{field}.cmd", encodable(item.cmd), NAME_CHARS)
    return entry(named, index=n + 1, cmd=cmd, result=completed)


def render_command_batch(canonical: CanonicalResult, budget: CommandBatchBudget) -> str:
    """Render how many commands ran, then the outcome and the output of each."""
    batch = json_of(canonical)
    count = f"{batch['completed_count']:,}/{batch['item_count']:,}"
    heading = f"{one_line(canonical.tool_name)} completed {count} items\n"
    sections = list(_item_sections(heading, batch["items"], budget.spare_chars))
    sections += _hidden_lines(batch)
    return joined(sections, _artifact_lines(batch))


def _item_sections(heading: str, items: Sequence[Json], room: int) -> Iterator[str]:
    """The items as sections; items without output are joined to the next one."""
    printed = [printed_texts(item.get("result", {})) for item in items]
    bodies = iter(readable(chain.from_iterable(texts.values() for texts in printed), room))
    section = heading
    for item, texts in zip(items, printed, strict=True):
        section += f"{_item_line(item)}\n"
        for name in texts:
            body = next(bodies)
            section += f"{name}:\n{body}" + ("" if body.endswith("\n") else "\n")
        if texts:
            yield section
            section = ""
    if section:
        yield section


def _item_line(item: Json) -> str:
    """The columns, separated by more white space than a label can contain."""
    columns = [f"[{item['index']}] {one_line(item['cmd'])}", _outcome(item)]
    if "duration_ms" in item:
        columns.append(seconds(item["duration_ms"]))
    return "    ".join(columns)


def _outcome(item: Json) -> str:
    if "result" in item:
        return worded_end(item["result"], f"exit={item['result']['exit_status']}")
    if "error_message" in item:
        return f"{item['status']} ({item['error_kind']}): {one_line(item['error_message'])}"
    status: str = item["status"]
    return status


def _hidden_lines(batch: Json) -> list[str]:
    seen = Counter(item["status"] for item in batch["items"])
    hidden = {status: batch[f"{status}_count"] - seen[status] for status in _STATUSES}
    detail = ", ".join(f"{count:,} {status}" for status, count in hidden.items() if count > 0)
    return hidden_lines(batch, batch["item_count"] - len(batch["items"]), "item", detail)


def _artifact_lines(batch: Json) -> list[str]:
    lines: list[str] = []
    for item in batch["items"]:
        result = item.get("result", {})
        roles = {n: f"{item['index']}.{role}" for n, role in command_roles(result).items()}
        lines += artifact_lines(result, roles)
    return lines + artifact_lines(batch, artifact_roles(batch))


FAMILY = Family(
    name="command_batch",
    result_types=(CommandBatchOutput,),
    projector=project_command_batch,
    render=render_command_batch,
    budget=CommandBatchBudget(),
    tool_names=frozenset({"ExecCommandBatch", "exec_command_batch"}),
    version=2,
)
