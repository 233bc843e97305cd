"""One module for each noun; each defines `command`."""
