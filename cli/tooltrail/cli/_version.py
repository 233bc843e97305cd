"""The version. A constant is faster than package metadata; a test compares both."""

VERSION = "0.1.0"
