"""Which invocations and messages there are, listed so that no damaged row can hide another.

A list reads keys and ids as the database spells them, and nothing else of a row: what a row holds
is read afterwards, one row at a time, where an error is about that row alone.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    LargeBinary,
    Select,
    String,
    case,
    cast,
    func,
    literal,
    select,
)
from sqlalchemy.orm import InstrumentedAttribute

from tooltrail.store._engines.database import Database
from tooltrail.store.tables import InvocationRow, MessageRow, SessionRow

PAGE = 500
"""Rows that are listed at once."""

ListedRow = type[InvocationRow] | type[MessageRow]
"""What is listed."""


class Listed(NamedTuple):
    """One row of `invocations` or of `messages`.

    Attributes:
        key: its primary key.
        session_key: the key of its session.
        id: of the invocation or message; None when what stands there is no id.
        open: whether its row says that it has not ended; a message always has.
        table: that the row is of.
    """

    key: int
    session_key: int
    id: UUID | None
    open: bool
    table: str = InvocationRow.__tablename__

    @property
    def name(self) -> str:
        """The id, else a description of the row."""
        return str(self.id or f"row {self.key} of {self.table}")


def iter_pages(
    database: Database, session: UUID | None, row: ListedRow = InvocationRow
) -> Iterator[list[Listed]]:
    """All rows, or those of a session, in the order of their keys, `PAGE` at once."""
    after, table = 0, row.__tablename__
    # Not the text itself, which may be no text.
    is_open = case((InvocationRow.state == "started", 1), else_=0)
    query = select(
        row.key,
        row.session_key,
        spelled(database, row.id).label("digits"),
        (is_open if row is InvocationRow else literal(0)).label("open"),
    ).order_by(row.key)
    if session is not None:
        query = query.where(row.session_key.in_(key_of(session)))
    while True:
        with database.read() as connection:
            rows = connection.execute(query.where(row.key > after).limit(PAGE)).all()
        if not rows:
            return
        yield [Listed(r.key, r.session_key, id_of(r.digits), bool(r.open), table) for r in rows]
        after = rows[-1].key


def key_of(session: UUID) -> Select[int]:
    """The key of a session, for a condition."""
    return select(SessionRow.key).where(SessionRow.id == session)


def spelled(database: Database, column: InstrumentedAttribute[Any]) -> ColumnElement[str]:
    """The hexadecimal digits of whatever stands in a column of ids."""
    if database.engine.dialect.name == "postgresql":
        return cast(column, String)
    return func.hex(cast(column, LargeBinary))


def id_of(digits: str) -> UUID | None:
    """The id behind digits, None when it is no id."""
    try:
        return UUID(digits)
    except ValueError:
        return None
