"""Shared by the formats whose answers are chats with `choices`."""
