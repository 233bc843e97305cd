"""The append-only, hash-chained journal of facts, shared by all producers of a host.

The stub beside this file lists the exports. An export is imported when it is first used. The log
loads only the standard library and light modules of `tooltrail.records`.
"""

from tooltrail.records.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
