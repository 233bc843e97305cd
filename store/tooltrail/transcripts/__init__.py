"""How a session is read back: an ordered conversation, and the formats it is printed in."""

from tooltrail.records.lazy_exports import lazy_exports

# What is exported stands in the stub beside this file, and is imported when it is first used.
__getattr__, __dir__ = lazy_exports(__name__, __file__)
