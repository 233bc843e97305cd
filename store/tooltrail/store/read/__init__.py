"""Reading: queries to a store, which return views."""
