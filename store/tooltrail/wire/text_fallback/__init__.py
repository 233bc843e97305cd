"""Calls and results as text, for formats and records that have no native form for them.

Each family of models has its own spelling; the generic one is `tool_result`. Messages are only
text: `{"messages": [{"role": "user", "content": "…"}]}`. Other formats write a batch that they
cannot carry in the text of a family.
"""

from tooltrail.records.lazy_exports import lazy_exports

# Lazy, because other formats import the families, and this format imports modules shared with them.
__getattr__, __dir__ = lazy_exports(__name__, __file__)
