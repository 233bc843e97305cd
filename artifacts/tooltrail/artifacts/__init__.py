"""Large bytes: where they are kept, how they are encoded, and how they are taken in and checked."""

from tooltrail.records.lazy_exports import lazy_exports

# What is exported stands in the stub beside this file, and is imported when it is first used:
# a program that reads the end of an artifact takes longer to import the rest than to do its work.
__getattr__, __dir__ = lazy_exports(__name__, __file__)
