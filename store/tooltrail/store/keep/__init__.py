"""Maintenance: create, upgrade, check, back up, relocate and collect garbage."""
