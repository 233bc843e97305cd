"""The argument that names a file or folder."""

from pydantic import JsonValue

PATH: dict[str, JsonValue] = {
    "type": "string",
    "minLength": 1,
    "description": "Path relative to the workspace, without `..`.",
}
