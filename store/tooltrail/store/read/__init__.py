"""The reading room: questions to a store, and the views that answer them."""
