"""The tables of people's own files, beside those of `tables.py`; `migrations/` creates and changes them."""

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, Table, Text

from backend.store.database import Moment
from backend.store.schema.tables import metadata

user_files = Table(
    "user_files",
    metadata,
    Column("id", Text, primary_key=True),  # random
    Column("person_id", ForeignKey("people.id")),  # NULL: of the owner of the machine
    Column("name", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("size", Integer, nullable=False),  # bytes, as they were uploaded
    Column("sha256", Text, nullable=False),
    Column("text_length", Integer),  # characters; NULL until it is read
    Column("status", Text, nullable=False),  # see `user_files.FileStatus`
    Column("problem", Text),  # why it could not be read
    Column("document_id", Text, nullable=False),  # its id in the index
    Column("picture", LargeBinary),  # the bytes of a picture; those of other files are not kept
    Column("created_at", Moment, nullable=False),
    # Grows with each change of what holds it, 0: the index has the labels of all that do.
    Column("labels_due", Integer, nullable=False, server_default="0"),
    Index(None, "person_id", "created_at"),
    Index(None, "status"),
)

message_files = Table(
    "message_files",
    metadata,
    Column("message_id", ForeignKey("messages.id", ondelete="CASCADE"), primary_key=True),
    Column("file_id", ForeignKey("user_files.id", ondelete="CASCADE"), primary_key=True),
    Column("place", Integer, nullable=False),  # in the order in which they were given
    Index(None, "file_id"),
)

# What a project or an assistant holds besides: each file stays its uploader's.
project_files = Table(
    "project_files",
    metadata,
    Column("project_id", ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True),
    Column("file_id", ForeignKey("user_files.id", ondelete="CASCADE"), primary_key=True),
    Column("added_at", Moment, nullable=False),
    Index(None, "file_id"),
)
assistant_files = Table(
    "assistant_files",
    metadata,
    Column("assistant_id", ForeignKey("assistants.id", ondelete="CASCADE"), primary_key=True),
    Column("file_id", ForeignKey("user_files.id", ondelete="CASCADE"), primary_key=True),
    Column("added_at", Moment, nullable=False),
    Index(None, "file_id"),
)

# What was uploaded and is not read yet.
waiting_uploads = Table(
    "waiting_uploads",
    metadata,
    Column("file_id", ForeignKey("user_files.id", ondelete="CASCADE"), primary_key=True),
    Column("data", LargeBinary, nullable=False),
    Column("tries", Integer, nullable=False),  # to read it, the present one included
    # The process that reads it; NULL while none does.
    Column("host", Text),
    Column("process", Integer),
    Column("process_started", Text),
    Column("lease_until", Moment),
)

# Who writes people's files to the index, and who holds it still.
index_claims = Table(
    "index_claims",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("kind", Text, nullable=False),  # write | hold
    Column("host", Text, nullable=False),
    Column("process", Integer, nullable=False),
    Column("process_started", Text, nullable=False),
    Column("lease_until", Moment, nullable=False),
)
