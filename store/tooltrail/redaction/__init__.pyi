from .credentials import Rule
from .redactor import Finding, Redacted, StreamRedactor, redact, redact_json, redactions
from .rules import RuleSet, default_rules

__all__ = [
    "Finding",
    "Redacted",
    "Rule",
    "RuleSet",
    "StreamRedactor",
    "default_rules",
    "redact",
    "redact_json",
    "redactions",
]
