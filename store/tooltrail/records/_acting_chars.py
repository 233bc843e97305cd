"""Characters that are not seen but act, for the classes of regular expressions."""

ACTING = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""What moves a cursor, ends a line or turns the direction of text, beyond the controls of ASCII.

Receipts must hold none of them raw, or a tool could make one line of a receipt look like another.
"""
