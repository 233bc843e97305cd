"""Reads policies: from TOML files written by people, and from the canonical JSON in a store."""

import tomllib
from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from tooltrail.records import canonical_json
from tooltrail.records._error_text import one_line
from tooltrail.records.budgets import Budget, ErrorBudget
from tooltrail.records.complaints import proposal, sentence_of
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.policy import FamilyRegistry, Policy, ToolPolicy

_COMPLAINT_CHARS = 300
"""Longest complaint in characters; it may repeat a key of any length from the document."""


class ForeignBudget(Budget):
    """The budget of a family that this program does not know, with any numbers."""

    model_config = ConfigDict(extra="allow")


def load_policy(document: Mapping[str, Any], families: FamilyRegistry) -> Policy:
    """Make the policy that a document describes; settings that it leaves out have their default.

    Numbers of a family replace its default ones. Unlike the numbers of a tool they are not clamped:
    people read the policies that they write, so a policy should mean what it says.

    Args:
        document: the members that `Policy.to_json` writes, or some of them.
        families: the known families.

    Raises:
        InvalidRecordError: a field is unknown, a number is out of range, or the budgets of two
            stages do not agree.
        NotFoundError: a described family, or the family of a tool, is not registered.
    """
    for name in _table(document.get("families", {}), "families"):
        families.named(name)
    defaults = {family.name: family.budget for family in families}
    return _described(document, defaults, families).covering(families)


def stored_policy(text: bytes | str, families: FamilyRegistry) -> Policy:
    """Read a policy that `Policy.to_json` wrote, even if families and fields have changed since.

    The families of tools are not checked. A number that was added since then has its default, and a
    field that was removed is ignored. Budgets of families that are not known are kept as written.
    The digest is the digest of the stored text.

    Raises:
        InvalidRecordError: `text` is not a policy of this version.
    """
    document = canonical_json.decode(text)
    if not isinstance(document, dict):
        raise InvalidRecordError("not a policy: it is not a JSON object")
    stored_tools = _table(document.get("tools", {}), "tools")
    tools = {name: _known(tool, ToolPolicy) for name, tool in stored_tools.items()}
    policy = _described(_known({**document, "tools": tools}, Policy), {}, families)
    stored = text.encode() if isinstance(text, str) else text
    object.__setattr__(policy, "digest", digest_of(stored))  # instead of computing it
    return policy


def _known(value: object, model: type[Policy | ToolPolicy]) -> Any:
    """A value; of an object, only the members that a model has as fields."""
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, object]", value)
    return {name: one for name, one in members.items() if name in model.model_fields}


def policy_from_toml(text: str, families: FamilyRegistry) -> Policy:
    """Like `load_policy`, but reads a TOML document.

    Raises:
        InvalidRecordError: `text` is not TOML, or not a policy.
        NotFoundError: a described family, or the family of a tool, is not registered.
    """
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not only TOMLDecodeError is raised
        raise InvalidRecordError(f"not TOML: {error}") from error
    return load_policy(document, families)


def _described(
    document: Mapping[str, Any], defaults: Mapping[str, Budget], families: FamilyRegistry
) -> Policy:
    budgets, place = dict(defaults), list[str]()
    try:
        for name, numbers in _table(document.get("families", {}), "families").items():
            place = ["families", name]
            family = families.find(name)
            default = family.budget if family else ForeignBudget()
            known = {**default.model_dump(), **_table(numbers, f"families.{name}")}
            budgets[name] = type(default).model_validate(known)
        place = []
        return Policy.model_validate({**document, "families": budgets})
    except ValidationError as error:
        complaint = first_complaint(
            error,
            *place,
            models={"": Policy, "families": Budget, "error": ErrorBudget, "tools": ToolPolicy},
            is_from_file=True,
        )
        raise InvalidRecordError(f"not a policy: {complaint}") from error


def _table(value: object, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidRecordError(f"not a policy: {place}: it is not a table")
    return cast("Mapping[str, Any]", value)


def first_complaint(
    error: ValidationError,
    *place: str,
    models: Mapping[str, type[BaseModel]] = {},
    is_from_file: bool = False,
) -> str:
    """The first problem and its location below `place`, on one line without the value.

    For an unknown key, the closest key of its section is proposed, if the model is known. For
    `is_from_file`, see `sentence_of`.
    """
    first = error.errors(include_url=False)[0]
    path = [*place, *(str(part) for part in first["loc"] if part != "[key]")]
    sentence = sentence_of(first, is_from_file=is_from_file)
    if first["type"] == "extra_forbidden":
        model = models.get(path[0] if path[1:] else "", BaseModel)
        sentence = f"unknown key `{path[-1]}`{proposal(path[-1], model.model_fields)}"
    return one_line(": ".join(filter(None, (".".join(path), sentence))), _COMPLAINT_CHARS)
