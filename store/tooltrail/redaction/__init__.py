"""Finds credentials in bytes and replaces them, before anything is stored. Pure functions.

    redacted = redact(b"token=ghp_0123456789abcdefghijklmnopqrstuvwxyz", default_rules())
    redacted.data      # b"token=[REDACTED:github-token]"
    redacted.found     # (Finding(rule="github-token", offset=6),)

A stream of any length passes through a `StreamRedactor` in pieces. A secret that crosses the border
of two pieces is found, because the redactor holds back every byte that may belong to a secret.
"""

from tooltrail.records.lazy_exports import lazy_exports

# As in `tooltrail.records`: the rules are compiled when they are first used.
__getattr__, __dir__ = lazy_exports(__name__, __file__)
