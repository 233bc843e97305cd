"""The tools of a folder: to read, list and search in it, and to change it where that is allowed."""

from tooltrail.records.lazy_exports import lazy_exports

# What searches in a process of its own imports one module of this package, and little else.
__getattr__, __dir__ = lazy_exports(__name__, __file__)
