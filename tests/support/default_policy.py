"""Writes the default policy into its package: `python -m tests.support.default_policy`."""

from pathlib import Path

from tooltrail.records import default_families, default_policy
from tooltrail.records import default_policy_document as document

DOCUMENT = Path(document.__file__).with_suffix(".json")


def made() -> bytes:
    """Canonical JSON of this program's default policy."""
    return default_policy(default_families()).to_json()


if __name__ == "__main__":
    DOCUMENT.write_bytes(made())
