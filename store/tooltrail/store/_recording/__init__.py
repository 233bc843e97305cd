"""From a call that begins or has ended to the rows of its transaction."""
