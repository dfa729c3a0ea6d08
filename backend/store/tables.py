"""The tables as they are now. How they came to be so: `migrations/`."""

from datetime import UTC, datetime

from sqlalchemy import (
    JSON,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Moment(TypeDecorator[datetime]):
    """An aware time, in UTC; SQLite would forget the zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        del dialect
        return value and value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        del dialect
        return value and (value.replace(tzinfo=UTC) if value.tzinfo is None else value)


# Ids are compared and ordered by code point, as the index orders them, in every database.
Id = Text().with_variant(Text(collation="C"), "postgresql")

sources = Table(
    "sources",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("settings", JSON, nullable=False),
    Column("checkpoint", Text),
    Column("created_at", Moment, nullable=False),
)

documents = Table(
    "documents",
    metadata,
    Column("id", Id, primary_key=True),
    Column("source_id", ForeignKey("sources.id"), nullable=False),
    Column("title", Text, nullable=False),
    Column("link", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("kept", Text),  # key of its content; NULL once that has been lost
    Column("generation", Integer, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("updated_at", Moment),
    Column("indexed_at", Moment, nullable=False),
    Column("listing", Integer, nullable=False, server_default="0"),
    Column("unsettled", Integer, nullable=False, server_default="0"),
    Index(None, "source_id", "id"),
    Index(None, "kept"),
    Index(
        "ix_documents_unsettled",
        "source_id",
        sqlite_where=text("unsettled = 1"),
        postgresql_where=text("unsettled = 1"),
    ),
)

document_readers = Table(
    "document_readers",
    metadata,
    Column("document_id", ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    Column("reader", Text, primary_key=True),
    sqlite_with_rowid=False,
)

failures = Table(
    "failures",
    metadata,
    Column("document_id", Id, primary_key=True),
    Column("source_id", ForeignKey("sources.id"), nullable=False),
    Column("item", Text, nullable=False),
    Column("link", Text),
    Column("reason", Text, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("first_at", Moment, nullable=False),
    Column("last_at", Moment, nullable=False),
    Column("listing", Integer, nullable=False, server_default="0"),
    Index(None, "source_id", "document_id"),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source_id", ForeignKey("sources.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("item", Text),
    Column("counts", JSON, nullable=False),
    Column("error", Text),
    Column("host", Text, nullable=False),
    Column("process", Integer, nullable=False),
    Column("process_started", Text, nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("renewed_at", Moment, nullable=False),
    Column("finished_at", Moment),
    Index(None, "source_id", "id"),
    # The database itself lets no two runs of a source go on at once.
    Index(
        "uq_runs_running",
        "source_id",
        unique=True,
        sqlite_where=text("state = 'running'"),
        postgresql_where=text("state = 'running'"),
    ),
    sqlite_autoincrement=True,
)
