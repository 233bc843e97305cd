"""What a transaction is asked to be, as SQLAlchemy carries it to where an engine begins one."""

READ_ONLY = "tooltrail_read_only"
"""It sees one snapshot, and cannot write."""

NO_TRANSACTION = "tooltrail_no_transaction"
"""None is begun: every statement is one of its own."""
