"""The tables of what programs put in, beside those of `tables.py`; `migrations/` creates and changes them."""

from sqlalchemy import JSON, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text

from backend.store.database import Moment
from backend.store.schema.tables import Id, metadata

pushes = Table(
    "pushes",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source_id", ForeignKey("sources.id"), nullable=False),
    Column("key", Text),  # that the program gave, so that the request counts once; NULL: none
    Column("digest", Text, nullable=False),  # of the request
    Column("answer", JSON(none_as_null=True)),  # what the same request is answered again
    Column("pushed_at", Moment, nullable=False),
    Index(None, "source_id", "key", unique=True),
    Index(None, "pushed_at"),
    # Ids are never reused: checkpoints name them.
    sqlite_autoincrement=True,
)

pushed_documents = Table(
    "pushed_documents",
    metadata,
    Column("id", Id, primary_key=True),
    Column("source_id", ForeignKey("sources.id"), nullable=False),
    Column("push", Integer, nullable=False),  # the last that changed it
    Column("title", Text, nullable=False),
    Column("digest", Text, nullable=False),  # of what was put in
    Column("readers", JSON, nullable=False),
    Column("content", LargeBinary),  # see `document_contents.encode_document`; NULL: deleted
    Column("file", LargeBinary),  # what is still to be read of it
    Column("file_size", Integer, nullable=False),  # bytes of that
    Column("problem", Text),  # why its file cannot be read
    Column("pushed_at", Moment, nullable=False),
    Index(None, "source_id", "push", "id"),
    Index(None, "source_id", "id"),
)
