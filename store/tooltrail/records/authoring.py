"""The parts of a family, for families that are defined outside this package.

Exports everything that a budget, a complete output, a canonical result, a projector and a renderer
need. `register_family` registers the family. CONTRIBUTING.md describes how to write a family.
"""

from tooltrail.records.lazy_exports import lazy_exports

# The stub beside this file lists the exports.
__getattr__, __dir__ = lazy_exports(__name__, __file__)
