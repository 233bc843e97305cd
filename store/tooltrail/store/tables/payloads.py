"""Where bytes are: small ones as bodies in the database, large ones as artifacts in the sink."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from tooltrail.store.tables._base import CLUSTERED, Base


class BodyRow(Base):
    """Bytes stored once, whichever records they belong to. Erased bytes leave the row."""

    __tablename__ = "bodies"
    __table_args__ = (CheckConstraint("encoding IN ('raw', 'zstd')", name="encoding"),)

    digest: Mapped[str] = mapped_column(primary_key=True)
    size: Mapped[int]
    encoding: Mapped[str]
    data: Mapped[bytes | None] = mapped_column(LargeBinary)


class ArtifactRow(Base):
    """One object of the artifact sink. `path` is relative to the artifact root.

    `frame_index` is of earlier versions: nothing writes or reads it. The index of the frames is at
    the end of the object.
    """

    __tablename__ = "artifacts"

    path: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[str]
    size: Mapped[int]
    stored_size: Mapped[int]
    line_count: Mapped[int]
    created_at: Mapped[datetime]
    frame_index: Mapped[bytes | None] = mapped_column(LargeBinary)


class InvocationArtifactRow(Base):
    """Which artifact stands at `result.artifacts[n]` of a canonical result, and its role."""

    __tablename__ = "invocation_artifacts"
    __table_args__ = (Index(None, "path"), CLUSTERED)

    invocation_key: Mapped[int] = mapped_column(ForeignKey("invocations.key"), primary_key=True)
    n: Mapped[int] = mapped_column(primary_key=True)
    role: Mapped[str]
    path: Mapped[str] = mapped_column(ForeignKey("artifacts.path"))
