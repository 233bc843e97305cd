"""hypothesis strategies for complete results of every family."""

from collections import ChainMap
from typing import Any

from hypothesis import strategies as st
from tests.records.identifiers import identifiers
from tests.support.generated import (
    json_streams,
    moments,
    names,
    numbered,
    numbered_from_one,
    numbers,
    optional_streams,
    repeated,
    states,
    streams,
    texts,
    words,
)

from tooltrail.records import (
    BatchItem,
    ChildAgentOutput,
    CommandBatchOutput,
    CommandOutput,
    ContentItem,
    FamilyOutput,
    FileChange,
    FileMutationOutput,
    FileReadOutput,
    GenericOutput,
    Hunk,
    LineRange,
    NotificationOutput,
    ObservedTask,
    PromotedCommand,
    RunningCommand,
    SchemaViolation,
    SearchOutput,
    StreamRecord,
    StructuredOutput,
    Task,
    TaskHandle,
    TaskInputOutput,
    TaskListOutput,
    TaskOutput,
    TaskStatusOutput,
    TaskStopOutput,
    TokenUsage,
    Transition,
    WebFetchOutput,
    WebSearchHit,
    WebSearchOutput,
    WorkItem,
    WorkItemOutput,
    Workspace,
    WorkspaceOutput,
    digest_of,
)


def commands() -> st.SearchStrategy[CommandOutput]:
    line = {"command": st.none() | texts, "cwd": st.none() | texts}
    ends = st.sampled_from(
        [{"exit_status": 3}, {"signal": 99}, {"signal": 9, "timed_out": True, "timeout_ms": 1}]
    )
    printed = st.one_of(
        st.fixed_dictionaries(
            {
                "stdout": streams("stdout"),
                "stderr": streams("stderr"),
                "order": optional_streams("order"),
            }
        ),
        st.fixed_dictionaries({"combined": streams("combined")}),
    )
    return st.builds(_command, st.fixed_dictionaries(line), ends, printed)


def _command(*parts: dict[str, Any]) -> CommandOutput:
    return CommandOutput.model_validate(dict(ChainMap(*parts)))


def _file_change(fields: dict[str, Any], **rest: Any) -> FileChange:
    return FileChange.model_validate({**fields, **rest})


def _transition(old: str, new: str) -> Transition:
    return Transition.model_validate({"from": old, "to": new})


batch_items = st.one_of(
    st.builds(
        BatchItem,
        cmd=texts,
        status=st.just("completed"),
        result=commands(),
        duration_ms=st.none() | numbers,
    ),
    st.builds(
        BatchItem,
        cmd=texts,
        status=st.sampled_from(["failed", "rejected"]),
        error_kind=words,
        error_message=texts,
    ),
    st.builds(BatchItem, cmd=texts, status=st.just("skipped")),
)
content_items = st.builds(
    ContentItem,
    media_type=st.sampled_from(["text/plain", "text/x", "image/png", "m" * 255]),
    stream=streams("_"),
)
hunks = st.builds(Hunk, old_start=numbers, old_lines=numbers, new_start=numbers, new_lines=numbers)


file_changes = st.builds(
    _file_change,
    st.one_of(
        st.fixed_dictionaries(
            {"action": st.sampled_from(["add", "modify", "delete"]), "path": names}
        ),
        st.fixed_dictionaries({"action": st.just("move"), "path": names, "from_path": names}),
    ),
    hunks=repeated(hunks, 33),
    diff=optional_streams("_"),
)
task_fields: dict[str, st.SearchStrategy[Any]] = {
    "task_id": identifiers,
    "kind": st.text(st.characters(), max_size=10),
    "status": st.sampled_from(["completed", "failed", "cancelled", "interrupted"]),
    "summary": st.none() | texts,
    "exit_status": st.none() | st.integers(0, 255),
}
tasks = st.builds(Task, **task_fields)
handles = st.builds(
    TaskHandle,
    task_id=identifiers,
    kind=st.text(st.characters(), max_size=10),
    status=st.none() | states,
)
usages = st.builds(
    TokenUsage,
    input_tokens=numbers,
    output_tokens=numbers,
    cache_read_tokens=st.none() | numbers,
    cache_write_tokens=st.none() | numbers,
)
work_items = st.builds(
    WorkItem, work_item_id=identifiers, title=texts, status=texts, description=st.none() | texts
)
violations = st.builds(SchemaViolation, path=texts, message=texts)
hits = st.builds(WebSearchHit, title=texts, url=texts, snippet=st.none() | texts)
workspaces = st.builds(
    Workspace,
    workspace_id=st.none() | identifiers,
    path=names,
    branch=st.none() | texts,
    kind=st.none() | texts,
    head=st.none() | texts,
)


def _submission(
    value: StreamRecord, agent: str, errors: tuple[SchemaViolation, ...], attempt: int
) -> StructuredOutput:
    return StructuredOutput(
        agent=agent, schema_digest=digest_of(b"schema"), value=value, errors=errors, attempt=attempt
    )


def _found(match_count: int, held_back: int, matches: StreamRecord) -> SearchOutput:
    returned = max(0, match_count - held_back)
    return SearchOutput(match_count=match_count, returned=returned, matches=matches)


work_actions = st.sampled_from(["created", "updated", "completed", "picked", "got", "listed"])
transitions = st.builds(_transition, texts, texts)
work_rest: dict[str, st.SearchStrategy[Any]] = {
    "action": work_actions,
    "transition": st.none() | transitions,
    "warnings": repeated(texts),
}

OUTPUTS: dict[type[FamilyOutput], st.SearchStrategy[FamilyOutput]] = {
    ChildAgentOutput: st.builds(
        ChildAgentOutput,
        agent_id=identifiers,
        child_session_id=st.none() | identifiers,
        task_handle=st.none() | handles,
        status=states,
        report=optional_streams("report"),
        token_usage=st.none() | usages,
    ),
    CommandOutput: commands(),
    CommandBatchOutput: st.builds(
        CommandBatchOutput,
        stop_on_error=st.booleans(),
        items=repeated(batch_items, 70).map(numbered_from_one),
    ),
    FileMutationOutput: st.builds(
        FileMutationOutput,
        changed_files=repeated(file_changes).map(lambda files: numbered(files, "diff.{}")),
        diagnostics=repeated(texts),
    ),
    FileReadOutput: st.builds(
        FileReadOutput,
        path=names,
        content=streams("content"),
        line_range=st.none() | st.builds(LineRange, start=st.just(1), end=numbers.filter(bool)),
    ),
    GenericOutput: st.builds(
        GenericOutput,
        content=repeated(content_items).map(lambda items: numbered(items, "content.{}")),
        structured=st.none() | json_streams("structured"),
    ),
    NotificationOutput: st.builds(
        NotificationOutput,
        delivered=st.booleans(),
        channel=names,
        notification_id=st.none() | identifiers,
    ),
    PromotedCommand: st.builds(
        PromotedCommand,
        command=st.none() | texts,
        cwd=st.none() | texts,
        task_handle=handles,
        initial_output=optional_streams("initial_output"),
    ),
    RunningCommand: st.builds(
        RunningCommand,
        command=st.none() | texts,
        cwd=st.none() | texts,
        task_handle=handles,
        task_summary=st.none() | texts,
    ),
    SearchOutput: st.builds(_found, numbers, numbers, streams("matches")),
    StructuredOutput: st.builds(
        _submission,
        json_streams("value"),
        identifiers,
        repeated(violations),
        st.integers(1, 2**31 - 1),
    ),
    TaskInputOutput: st.builds(
        TaskInputOutput, task=tasks, accepted_input=st.booleans(), bytes_written=st.none() | numbers
    ),
    TaskListOutput: st.builds(
        TaskListOutput, total_active=numbers, limit=st.none() | numbers, tasks=repeated(tasks)
    ),
    TaskOutput: st.builds(
        TaskOutput,
        retrieval_status=st.sampled_from(["success", "timeout", "not_ready"]),
        task=st.builds(
            ObservedTask,
            **task_fields,
            output=optional_streams("output"),
            result_summary=st.none() | texts,
            failure=optional_streams("failure"),
        ),
    ),
    TaskStatusOutput: st.builds(TaskStatusOutput, task=tasks),
    TaskStopOutput: st.builds(
        TaskStopOutput, task=tasks, stop_requested=st.booleans(), force_stop_requested=st.booleans()
    ),
    WebFetchOutput: st.builds(
        WebFetchOutput,
        url=texts,
        final_url=texts,
        status=st.integers(100, 599),
        content_type=texts,
        bytes_read=numbers,
        sha256=st.just(digest_of(b"page")),
        fetched_at=moments,
        text=streams("text"),
    ),
    WebSearchOutput: st.builds(
        WebSearchOutput, query=texts, provider=texts, results=repeated(hits), fetched_at=moments
    ),
    WorkItemOutput: st.one_of(
        st.builds(WorkItemOutput, item=work_items, **work_rest),
        st.builds(WorkItemOutput, items=repeated(work_items), **work_rest),
    ),
    WorkspaceOutput: st.builds(
        WorkspaceOutput,
        disposition=words,
        workspace=st.none() | workspaces,
        projection=st.none() | texts,
    ),
}
"""A strategy for each type of complete result of a built-in family."""
