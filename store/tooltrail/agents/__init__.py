"""Agents that must give back a value of a shape: configured, run, recorded and measured."""

import lazy_loader

# As in `tooltrail.records`: to check a configuration, no store and no client is imported.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # pyright: ignore[reportUnknownVariableType]  it has no types
