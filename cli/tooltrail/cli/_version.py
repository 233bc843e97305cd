"""The version, a constant: to ask for it takes no longer than to start; a test compares it."""

VERSION = "0.1.0"
