"""Names of tools in text: `server___tool`, three underscores between the namespace and the name.

A name is split where they stand first. So a name without a namespace that has them gets three in
front, and a namespace that has them, or ends with an underscore, cannot be distinguished.
"""

SEPARATOR = "___"


def spelled_name(namespace: str | None, tool_name: str) -> str:
    """One name for both."""
    if namespace:
        return f"{namespace}{SEPARATOR}{tool_name}"
    return f"{SEPARATOR}{tool_name}" if SEPARATOR in tool_name else tool_name


def split_name(name: str) -> tuple[str | None, str]:
    """The namespace and the name of the tool, as they were before `spelled_name`."""
    namespace, separator, tool_name = name.partition(SEPARATOR)
    if not separator or not tool_name:
        return None, name
    return namespace or None, tool_name
