"""The schema of an agent's result: which keywords are enforced, and whether a value fits."""

from tooltrail.agents.schemas.output_schema import OutputSchema, SchemaFault, UnsupportedSchemaError

__all__ = ["OutputSchema", "SchemaFault", "UnsupportedSchemaError"]
