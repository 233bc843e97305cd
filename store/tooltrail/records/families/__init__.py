"""The built-in families, one module for each kind of tool."""

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
    tasks,
    web,
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
    tasks.CONTROL,
    tasks.OUTPUT,
    web.FETCH,
    web.SEARCH,
    work_item.FAMILY,
    workspace.FAMILY,
)
"""All families of this package except `generic`, the fallback."""

FALLBACK = generic.FAMILY
"""The family of every tool that no other family serves."""
