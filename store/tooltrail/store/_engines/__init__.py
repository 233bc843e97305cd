"""Connections and transactions: what differs between SQLite and PostgreSQL, and what can fail."""
