"""A handwritten complete result of every type, with its summary."""

from tests.records.support import whole

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
    WebSearchOutput,
    WorkItem,
    WorkItemOutput,
    Workspace,
    WorkspaceOutput,
    digest_of,
)

NOON = "2026-04-23T12:00:00Z"
TASK = Task(task_id="task-9", kind="agent_task", status="running", summary="builds it")
HANDLE = TaskHandle(task_id="task-9", kind="command_task", status="running")


def log(role: str) -> StreamRecord:
    """A stream that is longer than the preview of any family."""
    return whole(b"".join(b"line %05d of a long log\n" % n for n in range(9000)), role)


def command(prefix: str = "") -> CommandOutput:
    stdout, stderr = log(f"{prefix}stdout"), whole(b"warning\n", f"{prefix}stderr")
    return CommandOutput(command="make", exit_status=3, stdout=stdout, stderr=stderr)


EXAMPLES: dict[str, FamilyOutput] = {
    "agent agent-7 running": ChildAgentOutput(
        agent_id="agent-7",
        child_session_id="ses-8",
        task_handle=HANDLE,
        status="running",
        report=log("report"),
        token_usage=TokenUsage(input_tokens=1200, output_tokens=34),
    ),
    "command exited with status 3": command(),
    "1 of 2 commands completed": CommandBatchOutput(
        items=(
            BatchItem(cmd="make", status="completed", result=command("1."), duration_ms=1500),
            BatchItem(
                cmd="ls", status="rejected", error_kind="permission_denied", error_message="no"
            ),
        )
    ),
    "2 files were changed": FileMutationOutput(
        changed_files=(
            FileChange(action="modify", path="src/a.py", diff=log("diff.0")),
            FileChange(action="move", path="new.py", from_path="old.py"),
        ),
        diagnostics=("a.py:1: unused import",),
    ),
    "read 225,000 bytes of a.py": FileReadOutput(
        path="a.py", content=log("content"), line_range=LineRange(start=3, end=9)
    ),
    "tool returned 2 content items": GenericOutput(
        content=(
            ContentItem(stream=log("content.0")),
            ContentItem(media_type="image/png", stream=whole(b"\x89PNG\0", "content.1")),
        ),
        structured=whole(b'{"rows":2}', "structured"),
    ),
    "notification delivered: #on-call": NotificationOutput(
        delivered=True, channel="#on-call", notification_id="ntf-7"
    ),
    "command promoted to managed task": PromotedCommand(
        command="serve", task_handle=HANDLE, initial_output=log("initial_output")
    ),
    "command is already running as a background task": RunningCommand(
        command="serve", task_handle=HANDLE, task_summary="serves it"
    ),
    "found 1,200 matches, 40 returned": SearchOutput(
        match_count=1200, returned=40, matches=log("matches")
    ),
    "result rejected with 1 error": StructuredOutput.of(
        "v" * 30_000,
        agent="main",
        schema_digest=digest_of(b"schema"),
        attempt=2,
        errors=(SchemaViolation(path="/a", message="is no number"),),
    ),
    "input accepted; task is running": TaskInputOutput(
        task=TASK, accepted_input=True, bytes_written=1200
    ),
    "12 active tasks, 2 returned": TaskListOutput(
        total_active=12,
        limit=5,
        tasks=(TASK, Task(task_id="task-2", kind="k", status="failed", exit_status=3)),
    ),
    "task output retrieved; task is failed": TaskOutput(
        retrieval_status="success",
        task=ObservedTask(
            task_id="task-9",
            kind="command_task",
            status="failed",
            exit_status=3,
            output=log("output"),
            result_summary="it broke",
        ),
    ),
    "task is failed": TaskStatusOutput(
        task=Task(task_id="t-9", kind="k", status="failed", exit_status=3, summary="builds")
    ),
    "stop requested; task is running": TaskStopOutput(task=TASK, stop_requested=True),
    "status 404 from https://a.example/": WebFetchOutput.model_validate(
        {
            "url": "https://a.example/",
            "final_url": "https://b.example/",
            "status": 404,
            "content_type": "text/html",
            "bytes_read": 1200,
            "sha256": digest_of(b"page"),
            "fetched_at": NOON,
            "text": log("text"),
        }
    ),
    'Found 2 results for "bread"': WebSearchOutput.model_validate(
        {
            "query": "bread",
            "provider": "engine",
            "results": [
                {"title": "Rye", "url": "https://a.example/", "snippet": "dark"},
                {"title": "Oat", "url": "https://b.example/"},
            ],
            "fetched_at": NOON,
        }
    ),
    "work item updated: Fix the parser": WorkItemOutput(
        action="updated",
        item=WorkItem(work_item_id="wi-1", title="Fix the parser", status="open"),
        transition=Transition.model_validate({"from": "new", "to": "ready"}),
        warnings=("it is late",),
    ),
    "1 work item listed": WorkItemOutput(
        action="listed", items=(WorkItem(work_item_id="wi-1", title="Fix", status="open"),)
    ),
    "workspace switched: /srv/app": WorkspaceOutput(
        disposition="switched",
        workspace=Workspace(
            workspace_id="ws-2", path="/srv/app", branch="main", kind="worktree", head="3fa9c1d"
        ),
        projection="read_only",
    ),
}
"""Results by summary. Some parts are too long for a preview, so that there are artifacts."""
