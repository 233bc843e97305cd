"""Lists, filters and whole invocations: the questions, and what answers them quickly."""
