"""Which revision a schema has, and whether it is what that revision should be."""
