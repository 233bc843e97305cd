"""Search: an index of words over the texts of calls and messages, and the search itself."""
