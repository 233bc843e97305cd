"""How facts enter: the append-only, hash-chained journal that all producers of a host share.

What is exported stands in the stub beside this file, and is imported when it is first used. The log
loads the standard library and light modules of `tooltrail.records` only.
"""

from tooltrail.records.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
