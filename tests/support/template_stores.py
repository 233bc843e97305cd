"""Fresh stores for tests. To create one takes some 25 ms, so no template is copied."""

from tooltrail.store import create_store as make_store

__all__ = ["make_store"]
