"""The text formats of model families, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from tooltrail.records import NotFoundError
from tooltrail.wire.text_fallback import anthropic_xml, hermes, tagged
from tooltrail.wire.text_fallback.family import TextFamily

FAMILIES: Mapping[str, TextFamily] = MappingProxyType(
    {module.FAMILY.name: module.FAMILY for module in (tagged, hermes, anthropic_xml)}
)
"""The families by name."""


def text_family(name: str) -> TextFamily:
    """The family of this name.

    Raises:
        NotFoundError: there is none.
    """
    if name not in FAMILIES:
        known = ", ".join(sorted(FAMILIES))
        raise NotFoundError(f"there is no text format {name!r}; there are {known}")
    return FAMILIES[name]
