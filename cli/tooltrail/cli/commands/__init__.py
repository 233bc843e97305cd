"""The commands: one module per noun, each with the click command `command`."""
