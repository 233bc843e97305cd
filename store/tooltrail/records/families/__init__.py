"""The built-in families, one module each."""

from tooltrail.records.families import (
    child_agent,
    command,
    command_batch,
    file_mutation,
    file_read,
    generic,
    notification,
    search,
    structured_output,
    task_control,
    task_output,
    web_fetch,
    web_search,
    work_item,
    workspace,
)
from tooltrail.records.families._commands import CommandBudget, CommandSummary
from tooltrail.records.families._file_changes import ChangedFile, FileChange, Hunk
from tooltrail.records.families._tasks import Task, TaskHandle, TaskSnapshot
from tooltrail.records.families.child_agent import (
    ChildAgentBudget,
    ChildAgentOutput,
    ChildAgentResult,
    TokenUsage,
)
from tooltrail.records.families.command import (
    CombinedCommandResult,
    CommandOutput,
    CommandResult,
)
from tooltrail.records.families.command_batch import (
    BatchItem,
    BatchItemResult,
    CommandBatchBudget,
    CommandBatchOutput,
    CommandBatchResult,
)
from tooltrail.records.families.file_mutation import (
    FileMutationBudget,
    FileMutationOutput,
    FileMutationResult,
)
from tooltrail.records.families.file_read import (
    FileReadBudget,
    FileReadOutput,
    FileReadResult,
    LineRange,
)
from tooltrail.records.families.generic import (
    ContentItem,
    ContentPreview,
    GenericBudget,
    GenericOutput,
    GenericResult,
)
from tooltrail.records.families.notification import (
    NotificationBudget,
    NotificationOutput,
    NotificationResult,
)
from tooltrail.records.families.promoted import (
    PromotedCommand,
    PromotedResult,
    RunningCommand,
    RunningResult,
)
from tooltrail.records.families.search import SearchBudget, SearchOutput, SearchResult
from tooltrail.records.families.structured_output import (
    SchemaViolation,
    StructuredOutput,
    StructuredOutputBudget,
    StructuredOutputResult,
)
from tooltrail.records.families.task_control import (
    TaskControlBudget,
    TaskInputOutput,
    TaskInputResult,
    TaskListOutput,
    TaskListResult,
    TaskStatusOutput,
    TaskStatusResult,
    TaskStopOutput,
    TaskStopResult,
)
from tooltrail.records.families.task_output import (
    ObservedTask,
    ObservedTaskResult,
    TaskOutput,
    TaskOutputBudget,
    TaskOutputResult,
)
from tooltrail.records.families.web_fetch import WebFetchBudget, WebFetchOutput, WebFetchResult
from tooltrail.records.families.web_search import (
    WebSearchBudget,
    WebSearchHit,
    WebSearchOutput,
    WebSearchResult,
)
from tooltrail.records.families.work_item import (
    Transition,
    WorkItem,
    WorkItemBudget,
    WorkItemOutput,
    WorkItemResult,
)
from tooltrail.records.families.workspace import (
    Workspace,
    WorkspaceBudget,
    WorkspaceOutput,
    WorkspaceResult,
)
from tooltrail.records.readable_json import indent_json

__all__ = [
    "BUILT_IN",
    "FALLBACK",
    "BatchItem",
    "BatchItemResult",
    "ChangedFile",
    "ChildAgentBudget",
    "ChildAgentOutput",
    "ChildAgentResult",
    "CombinedCommandResult",
    "CommandBatchBudget",
    "CommandBatchOutput",
    "CommandBatchResult",
    "CommandBudget",
    "CommandOutput",
    "CommandResult",
    "CommandSummary",
    "ContentItem",
    "ContentPreview",
    "FileChange",
    "FileMutationBudget",
    "FileMutationOutput",
    "FileMutationResult",
    "FileReadBudget",
    "FileReadOutput",
    "FileReadResult",
    "GenericBudget",
    "GenericOutput",
    "GenericResult",
    "Hunk",
    "LineRange",
    "NotificationBudget",
    "NotificationOutput",
    "NotificationResult",
    "ObservedTask",
    "ObservedTaskResult",
    "PromotedCommand",
    "PromotedResult",
    "RunningCommand",
    "RunningResult",
    "SchemaViolation",
    "SearchBudget",
    "SearchOutput",
    "SearchResult",
    "StructuredOutput",
    "StructuredOutputBudget",
    "StructuredOutputResult",
    "Task",
    "TaskControlBudget",
    "TaskHandle",
    "TaskInputOutput",
    "TaskInputResult",
    "TaskListOutput",
    "TaskListResult",
    "TaskOutput",
    "TaskOutputBudget",
    "TaskOutputResult",
    "TaskSnapshot",
    "TaskStatusOutput",
    "TaskStatusResult",
    "TaskStopOutput",
    "TaskStopResult",
    "TokenUsage",
    "Transition",
    "WebFetchBudget",
    "WebFetchOutput",
    "WebFetchResult",
    "WebSearchBudget",
    "WebSearchHit",
    "WebSearchOutput",
    "WebSearchResult",
    "WorkItem",
    "WorkItemBudget",
    "WorkItemOutput",
    "WorkItemResult",
    "Workspace",
    "WorkspaceBudget",
    "WorkspaceOutput",
    "WorkspaceResult",
    "indent_json",
]

BUILT_IN = (
    child_agent.FAMILY,
    command.FAMILY,
    command_batch.FAMILY,
    file_mutation.FAMILY,
    file_read.FAMILY,
    notification.FAMILY,
    search.FAMILY,
    structured_output.FAMILY,
    task_control.FAMILY,
    task_output.FAMILY,
    web_fetch.FAMILY,
    web_search.FAMILY,
    work_item.FAMILY,
    workspace.FAMILY,
)
"""All families of this package but `generic`, which takes what no other family serves."""

FALLBACK = generic.FAMILY
"""Serves every tool that no other family does."""
