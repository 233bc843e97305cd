"""Ingestion: turns facts of journals into rows of the store.

A function that uses the database, the journal, the spool or the sink raises `UnavailableError` if
this cannot be used now, and `DamageError` if the database or the heads of all segments are damaged.
"""
