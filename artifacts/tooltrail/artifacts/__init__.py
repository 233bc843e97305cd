"""Large byte strings: capture, encoding, storage, reading and verification."""

from tooltrail.records.lazy_exports import lazy_exports

# `__init__.pyi` lists the exported names. Each one is imported on first use: a program that reads
# the end of an artifact would spend more time on the other imports than on its work.
__getattr__, __dir__ = lazy_exports(__name__, __file__)
