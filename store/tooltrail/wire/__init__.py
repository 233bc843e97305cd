"""The wire formats of providers: reading, streaming and writing conversations. Pure functions.

Each format has its own package; `wire_format(name)` returns it. All formats convert to and from
the canonical conversation of `tooltrail.records`. So a conversation with one provider can be sent
to another, with a report of everything that the conversion changed or lost.
"""

from tooltrail.records.lazy_exports import lazy_exports

# As in `tooltrail.records`: a command that needs one format does not import the others.
__getattr__, __dir__ = lazy_exports(__name__, __file__)
