"""Answers in the shape of a chat, as `choices`: what the formats share that read them."""
