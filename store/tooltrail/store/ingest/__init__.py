"""Ingestion: turns facts of journals into rows of the store.

Every function raises `UnavailableError` if the database, the journal, the spool or the sink cannot
be used now, and `DamageError` if the database or the heads of all segments are damaged.
"""
