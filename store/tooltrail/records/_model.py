"""The base of every record: frozen, and unknown fields are an error."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """An immutable value with named fields; equality is by value."""

    # "constants" because the default would silently turn NaN and infinities into null.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")
