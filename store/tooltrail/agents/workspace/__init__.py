"""The tools of a folder: to read, list and search in it, and where that is allowed to change it."""

import lazy_loader

# What searches in a process of its own imports one module of this package, and little else.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # pyright: ignore[reportUnknownVariableType]  it has no types
