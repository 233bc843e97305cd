"""The one function that writes rows: facts of journals become rows of the store."""
