"""Imports what agents left behind: their sessions as files, into the journal.

    importer = Importer(spool, default_rules())
    imported = importer.import_file(Path("session.jsonl"))
    imported.counts["calls"]

An importer is a producer: it appends facts to the journal, and never touches the database. Each
format has one module, which reads lines and yields events; `recording` turns events into facts.
"""

from tooltrail.records.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
