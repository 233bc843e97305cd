"""Maintenance of a store: create, upgrade, check, back up, relocate and collect garbage."""
