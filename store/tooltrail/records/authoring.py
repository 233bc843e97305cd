"""What a family is made of, for those that live outside of this package.

All that a budget, a complete output, a canonical result, a projector and a renderer need can be
imported from here. `register_family` makes the family known. CONTRIBUTING.md says how to write one.
"""

from tooltrail.records.lazy_exports import lazy_exports

# The stub beside this file says what can be imported.
__getattr__, __dir__ = lazy_exports(__name__, __file__)
