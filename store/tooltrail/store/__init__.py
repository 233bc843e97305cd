"""Stores of records: creating, upgrading, recording and reading."""

from tooltrail.records.lazy_exports import lazy_exports

# The stub beside this file lists the exports. Each is imported when it is first used: a program
# that reads the end of an artifact would spend more time on imports than on its work.
__getattr__, __dir__ = lazy_exports(__name__, __file__)
