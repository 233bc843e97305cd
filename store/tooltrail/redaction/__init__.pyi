from .redactor import Finding, Redacted, StreamRedactor, may_have_secrets, redact
from .rules import Rule, RuleSet, default_rules

__all__ = [
    "Finding",
    "Redacted",
    "Rule",
    "RuleSet",
    "StreamRedactor",
    "default_rules",
    "may_have_secrets",
    "redact",
]
