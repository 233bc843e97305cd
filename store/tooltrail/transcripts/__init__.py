"""Reads a session as an ordered conversation, and prints it in several formats."""

from tooltrail.records.lazy_exports import lazy_exports

# The stub beside this file lists the exports, which are imported on first use.
__getattr__, __dir__ = lazy_exports(__name__, __file__)
