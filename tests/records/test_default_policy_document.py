"""The document of the default policy in the package is that of the default policy."""

from tests.support.default_policy import made

from tooltrail.records import default_families, default_policy
from tooltrail.records.default_policy_document import default_policy_json


def test_the_document_is_that_of_the_default_policy() -> None:
    assert default_policy_json() == made(), "python -m tests.support.default_policy"
    assert default_policy(default_families()).stream_bytes_of("exec") is None
