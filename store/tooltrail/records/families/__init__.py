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
"""All families of this package except `generic`, the fallback."""

FALLBACK = generic.FAMILY
"""The family of every tool that no other family serves."""
