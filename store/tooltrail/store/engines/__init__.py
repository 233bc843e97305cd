"""Connections to SQLite and PostgreSQL. Only this package knows the drivers."""
