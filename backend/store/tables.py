"""The tables as they are now. How they came to be so: `migrations/`."""

from datetime import UTC, datetime

from sqlalchemy import (
    JSON,
    Column,
    ColumnElement,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    ScalarSelect,
    Table,
    Text,
    TypeDecorator,
    select,
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
    Column("credential", Text),  # sealed by `vault.Vault`
    Column("paused_at", Moment),  # NULL: it is kept in step
    Column("served", Integer, nullable=False, server_default="0"),  # grows with every batch taken
)


def source_named(name: str) -> ScalarSelect[int]:
    """The id of the source of this name, within another statement; NULL where there is none."""
    return select(sources.c.id).where(sources.c.name == name).scalar_subquery()


def of_source(name: str | None) -> list[ColumnElement[bool]]:
    """The condition of the source of this name; none where none is named."""
    return [] if name is None else [sources.c.name == name]


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
    Column("generation", Integer, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("updated_at", Moment),
    Column("indexed_at", Moment, nullable=False),
    Column("listing", Integer, nullable=False, server_default="0"),
    Column("unsettled", Integer, nullable=False, server_default="0"),
    Index(None, "source_id", "id"),
    Index(
        "ix_documents_unsettled",
        "source_id",
        sqlite_where=text("unsettled = 1"),
        postgresql_where=text("unsettled = 1"),
    ),
)

# In a table of their own: what lists documents reads none of it.
contents = Table(
    "contents",
    metadata,
    Column("document_id", ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    Column("content", LargeBinary),  # as `contents.encoded` makes it; NULL once that has been lost
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
    Column("next_try", Moment),  # NULL: at the next occasion
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
    Column(
        "lease_until", Moment
    ),  # by then its process says that it lives; NULL: `renewed_at` counts
    Column("fetched", Integer, nullable=False, server_default="0"),  # 1: the source has told all
    Column("waiting_for", Text),
    Column("next_try", Moment),
    Column("decision", JSON(none_as_null=True)),  # numbers, where a person is to decide
    Column("accepted", Integer),  # documents that a person has agreed to lose
    Column(
        "tries", Integer, nullable=False, server_default="0"
    ),  # in vain before, one after another
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

batches = Table(
    "batches",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source_id", ForeignKey("sources.id"), nullable=False),
    Column("run_id", ForeignKey("runs.id"), nullable=False),
    Column("after", Integer, nullable=False),  # waits for all batches of its source up to this one
    Column("document_ids", JSON, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("saved_at", Moment, nullable=False),
    Column("fence", Integer, nullable=False, server_default="0"),  # grows with every lease
    Column("lease_until", Moment),  # NULL: nobody holds it
    Column("host", Text),
    Column("process", Integer),
    Column("process_started", Text),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("next_try", Moment),
    Index(None, "source_id", "id"),
    Index(None, "run_id"),
    # A number is never given again: generations of documents grow with it.
    sqlite_autoincrement=True,
)

schedule = Table(
    "schedule",
    metadata,
    Column("source_id", ForeignKey("sources.id"), primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("every", Integer),  # seconds; 0: never by itself; NULL: as usual
    Column("last_at", Moment),
    Column("asked_at", Moment),  # a person wants one now
    Column("accepted", Integer),  # for `runs.accepted` of the next one
)

workers = Table(
    "workers",
    metadata,
    Column("host", Text, primary_key=True),
    Column("process", Integer, primary_key=True, autoincrement=False),
    Column("process_started", Text, primary_key=True),
    Column("queue", Text, nullable=False),
    Column("seen_at", Moment, nullable=False),
    Column("trouble", Text),  # what keeps it from its work
)

audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Moment, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", JSON, nullable=False),
    Index(None, "subject", "id"),
    sqlite_autoincrement=True,
)
