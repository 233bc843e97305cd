"""Ingestion: turns facts of journals into rows of the store."""
