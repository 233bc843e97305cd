from .redactor import Finding, Redacted, StreamRedactor, redact
from .rules import Rule, RuleSet, default_rules

__all__ = [
    "Finding",
    "Redacted",
    "Rule",
    "RuleSet",
    "StreamRedactor",
    "default_rules",
    "redact",
]
