"""What a record is: envelope, families, projection, rendering, previews, canonical JSON, digests.

Everything here is pure: no I/O, no clock, no SQL. The same inputs give the same bytes.
"""

from tooltrail.records.lazy_exports import lazy_exports

# The stub beside this file lists the exports. Each export is imported on first use: a program
# that reads the end of an artifact would spend more time on importing the rest than on its work.
__getattr__, __dir__ = lazy_exports(__name__, __file__)
