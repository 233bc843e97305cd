"""The schema of an agent's result: validation, strict form, and comparison of schemas."""

from tooltrail.agents._extra import missing_extra

try:
    from tooltrail.agents.schemas._keywords import (
        SchemaFault,
        UnsupportedSchemaError,
        contradictions_of,
    )
    from tooltrail.agents.schemas.comparing import SchemaChange, compare_schemas
    from tooltrail.agents.schemas.output_schema import OutputSchema
    from tooltrail.agents.schemas.strict_form import StrictForm
except ImportError as error:
    raise missing_extra(error) from error

__all__ = [
    "OutputSchema",
    "SchemaChange",
    "SchemaFault",
    "StrictForm",
    "UnsupportedSchemaError",
    "compare_schemas",
    "contradictions_of",
]
