"""Connections to SQLite and PostgreSQL, by their drivers. Only this package knows the drivers."""
