"""What is derived from `invocations` so that few of very many are found; it can be made anew."""

from sqlalchemy import LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from tooltrail.store.tables._base import CLUSTERED, Base


class RangeTraitRow(Base):
    """Which invocations of one range of keys have one trait: a tool, a state, an agent.

    Nothing here is evidence, and no trigger guards it: whoever doubts a row may delete all of them.
    A range is written as a whole, in one transaction, or not at all. See `traits` and `ranges` of
    `_reading`.
    """

    __tablename__ = "range_traits"
    __table_args__ = CLUSTERED

    trait: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    range_number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    members: Mapped[bytes] = mapped_column(LargeBinary)
