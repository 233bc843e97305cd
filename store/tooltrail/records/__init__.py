"""What a record is: envelope, families, projection, rendering, previews, canonical JSON, digests.

Everything here is pure: no I/O, no clock, no SQL. The same inputs give the same bytes.
"""

from tooltrail.records.lazy_exports import lazy_exports

# What is exported stands in the stub beside this file, and is imported when it is first used:
# a program that reads the end of an artifact takes longer to import the rest than to do its work.
__getattr__, __dir__ = lazy_exports(__name__, __file__)
