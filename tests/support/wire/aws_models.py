"""Shapes of AWS's service models, from the data of botocore, as JSON Schema.

botocore itself checks neither patterns nor enumerations, and expects bytes where JSON has base64.
"""

# The stubs of botocore type the models only in part.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable
from functools import cache
from typing import Any

Schema = dict[str, Any]


@cache
def _shapes(service: str) -> dict[str, Any]:
    from botocore.loaders import Loader

    shapes: dict[str, Any] = Loader().load_service_model(service, "service-2")["shapes"]
    return shapes


def schema_of(service: str, name: str) -> Schema:
    """The JSON Schema of a shape, with all nested shapes."""
    shape = _shapes(service)[name]
    if shape.get("document"):
        return {}
    return _KINDS[shape["type"]](service, shape)


def _structure(service: str, shape: Any) -> Schema:
    members = {name: schema_of(service, one["shape"]) for name, one in shape["members"].items()}
    counted = {"minProperties": 1, "maxProperties": 1} if shape.get("union") else {}
    return {
        "type": "object",
        "properties": members,
        "required": shape.get("required", []),
        "additionalProperties": False,
        **counted,
    }


def _list(service: str, shape: Any) -> Schema:
    items = schema_of(service, shape["member"]["shape"])
    return {"type": "array", "items": items, "minItems": shape.get("min", 0)}


def _string(_service: str, shape: Any) -> Schema:
    known = {"minLength": "min", "maxLength": "max", "enum": "enum"}
    schema = {keyword: shape[one] for keyword, one in known.items() if one in shape}
    pattern = {"pattern": f"^(?:{shape['pattern']})$"} if "pattern" in shape else {}
    return {"type": "string", **schema, **pattern}


_KINDS: dict[str, Callable[[str, Any], Schema]] = {
    "structure": _structure,
    "list": _list,
    "string": _string,
    "blob": lambda _service, _shape: {"type": "string", "pattern": r"^[A-Za-z0-9+/]+={0,2}$"},
    "boolean": lambda _service, _shape: {"type": "boolean"},
    "integer": lambda _service, _shape: {"type": "integer"},
}
