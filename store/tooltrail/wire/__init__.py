"""How providers spell conversations: reading, streaming and writing their formats. Pure.

One package for each format; `wire_format(name)` gives it. Between them is the canonical
conversation of `tooltrail.records`: whatever one provider said can be sent to another, with a
report of everything that was changed or lost on the way.
"""

from tooltrail.records.lazy_exports import lazy_exports

# As in `tooltrail.records`: a command that needs one format does not wait for the others.
__getattr__, __dir__ = lazy_exports(__name__, __file__)
