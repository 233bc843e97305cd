"""Tools for an agent: read, list, search and, if allowed, change the files of a folder."""

from tooltrail.records.lazy_exports import lazy_exports

# The search process imports one module of this package. It must start fast.
__getattr__, __dir__ = lazy_exports(__name__, __file__)
