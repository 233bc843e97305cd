"""Calls and results written in words, where a format or a record has no native form for them.

Each family of models has its spelling; the generic one is `tool_result`. Messages are text alone:
`{"messages": [{"role": "user", "content": "…"}]}`. Other formats tell a batch that they cannot
carry in the text of a family.
"""

from tooltrail.records.lazy_exports import lazy_exports

# Other formats need the families alone, and this format needs what it shares with them.
__getattr__, __dir__ = lazy_exports(__name__, __file__)
