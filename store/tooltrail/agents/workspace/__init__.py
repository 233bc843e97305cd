"""The tools of a folder: to read, list and search in it, and where that is allowed to change it."""

from tooltrail.records.lazy_exports import lazy_exports

# What searches in a process of its own imports one module of this package, and little else.
__getattr__, __dir__ = lazy_exports(__name__, __file__)
