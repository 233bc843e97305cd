"""A digest as a field of a model; apart from `digests`, which is needed where pydantic is not."""

from typing import Annotated

from pydantic import StringConstraints

from tooltrail.records.digests import Digest

DigestField = Annotated[Digest, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
"""A digest whose spelling is checked."""
