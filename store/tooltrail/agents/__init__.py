"""Agents that must give back a value of a shape: configured, run, recorded and measured."""

from tooltrail.records.lazy_exports import lazy_exports

# As in `tooltrail.records`: to check a configuration, no store and no client is imported.
__getattr__, __dir__ = lazy_exports(__name__, __file__)
