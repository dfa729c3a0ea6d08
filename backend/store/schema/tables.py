"""The current tables of the database; `migrations/` creates and changes them."""

from sqlalchemy import (
    JSON,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    text,
)

from backend.store.database import Moment

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


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
    Column("credential", Text),  # encrypted by `credential_vault`
    Column("paused_at", Moment),  # NULL: not paused
    Column("owner_id", ForeignKey("people.id")),  # NULL: of the admins
    Column("credential_person_id", ForeignKey("people.id")),  # who entered it; NULL: an admin
    Column(
        "served", Integer, nullable=False, server_default="0"
    ),  # increases with every claimed batch
    # Ids are never reused: reader tokens name a source by it.
    sqlite_autoincrement=True,
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
    Column("generation", Integer, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("updated_at", Moment),
    Column("indexed_at", Moment, nullable=False),
    Column("listing", Integer, nullable=False, server_default="0"),
    Column("unlisted_since", Moment),  # NULL: the last listing that was applied contains it
    Column("unsettled", Integer, nullable=False, server_default="0"),
    Index(None, "source_id", "id"),
    Index(
        "ix_documents_unsettled",
        "source_id",
        sqlite_where=text("unsettled = 1"),
        postgresql_where=text("unsettled = 1"),
    ),
)

# A separate table: queries that list documents do not read it.
contents = Table(
    "contents",
    metadata,
    Column("document_id", ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    Column("content", LargeBinary),  # see `document_contents.encode_document`; NULL after a loss
)

document_readers = Table(
    "document_readers",
    metadata,
    Column("document_id", ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    Column("reader", Text, primary_key=True),
    sqlite_with_rowid=False,
)

# Accesses of several clauses: `document_readers` names one by the token that is derived from its clauses.
conjunctions = Table(
    "conjunctions",
    metadata,
    Column("token", Text, primary_key=True),
    Column("clauses", Integer, nullable=False),
)

conjunction_readers = Table(
    "conjunction_readers",
    metadata,
    Column("reader", Text, primary_key=True),
    Column("conjunction", ForeignKey("conjunctions.token"), primary_key=True),
    Column("clause", Integer, primary_key=True, autoincrement=False),
    Index(None, "conjunction", "clause"),
    sqlite_with_rowid=False,
)

# Who belongs to the groups and scopes of a source; both are reader tokens.
memberships = Table(
    "memberships",
    metadata,
    Column("member", Text, primary_key=True),
    Column("token", Text, primary_key=True),
    Column("source_id", ForeignKey("sources.id"), nullable=False),
    Column("pending", Integer, nullable=False),  # 1: counts only once the documents were compared
    Column("since", Moment),  # when it was first listed; NULL: before these were recorded
    Index(None, "source_id", "token"),
    sqlite_with_rowid=False,
)

# All groups and scopes of sources, those without members too.
source_groups = Table(
    "source_groups",
    metadata,
    Column("token", Text, primary_key=True),
    Column("source_id", ForeignKey("sources.id"), nullable=False, index=True),
    Column("name", Text, nullable=False),  # as people at the source know it
    Column("listing", Integer, nullable=False),  # the last `group_listings.number` that had it
    sqlite_with_rowid=False,
)

group_listings = Table(
    "group_listings",
    metadata,
    Column("source_id", ForeignKey("sources.id"), primary_key=True),
    Column("number", Integer, nullable=False),  # of the latest; increases with every listing
    Column("checkpoint", Text),  # from where it resumes
    Column("is_whole", Integer, nullable=False),  # 1: all were listed, documents are compared
    Column("started_at", Moment),  # NULL: it is finished
    Column("finished_at", Moment),  # when the last whole one was applied to its end
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
    Column("next_try", Moment),  # NULL: in the next run; with a version, on request only
    Column("version", Text),  # can never be read; NULL: another try may succeed
    Column("run", Integer),  # the last one in which it failed
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
    ),  # renewed by its process before this time; NULL: see `renewed_at`
    Column("fetched", Integer, nullable=False, server_default="0"),  # nothing reads or writes it
    Column("waiting_for", Text),
    Column("next_try", Moment),
    Column("decision", JSON(none_as_null=True)),  # counts, if a person has to decide
    Column("accepted", Integer),  # deletions that a person has accepted
    Column("tries", Integer, nullable=False, server_default="0"),  # consecutive failed tries
    Column("done", Integer, nullable=False, server_default="0"),  # documents of the stage
    Column("total", Integer),  # documents of the stage, where known
    Column("stage_at", Moment),  # since when it is in the stage
    Column("embedding", JSON(none_as_null=True)),  # `indexing.ingestion.progress.Embedding`
    Column("listing", Integer),  # the number of the listing that it applied
    Index(None, "source_id", "id"),
    # The database itself prevents two concurrent runs of a source.
    Index(
        "uq_runs_running",
        "source_id",
        unique=True,
        sqlite_where=text("state = 'running'"),
        postgresql_where=text("state = 'running'"),
    ),
    sqlite_autoincrement=True,
)

listings = Table(
    "listings",
    metadata,
    Column("source_id", ForeignKey("sources.id"), primary_key=True),
    Column("number", Integer, nullable=False),  # of the latest; increases with every listing
    Column("checkpoint", Text),  # from where it resumes
    Column("started_at", Moment),  # NULL: it is finished
    Column("compared_at", Moment),  # when the last whole one began
)

batches = Table(
    "batches",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source_id", ForeignKey("sources.id"), nullable=False),
    Column("run_id", ForeignKey("runs.id"), nullable=False),
    Column("after", Integer, nullable=False),  # waits for the batches of its source up to this id
    Column("document_ids", JSON, nullable=False),
    Column("changes", Integer, nullable=False, server_default="0"),
    Column("payload", LargeBinary, nullable=False),
    Column("saved_at", Moment, nullable=False),
    Column("fence", Integer, nullable=False, server_default="0"),  # increases with every lease
    Column("lease_until", Moment),  # NULL: not leased
    Column("host", Text),
    Column("process", Integer),
    Column("process_started", Text),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("next_try", Moment),
    Index(None, "source_id", "id"),
    Index(None, "run_id"),
    # Ids are never reused: the generations of documents increase with them.
    sqlite_autoincrement=True,
)

schedule = Table(
    "schedule",
    metadata,
    Column("source_id", ForeignKey("sources.id"), primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("every", Integer),  # seconds; 0: only on request; NULL: the default
    Column("last_at", Moment),
    Column("asked_at", Moment),  # a person requested a run
    Column("accepted", Integer),  # becomes `runs.accepted` of the next run
)

workers = Table(
    "workers",
    metadata,
    Column("host", Text, primary_key=True),
    Column("process", Integer, primary_key=True, autoincrement=False),
    Column("process_started", Text, primary_key=True),
    Column("queue", Text, nullable=False),
    Column("seen_at", Moment, nullable=False),
    Column("trouble", Text),  # why it cannot work
)

api_tokens = Table(
    "api_tokens",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("digest", Text, nullable=False, unique=True),  # SHA-256 of the token
    Column("scopes", JSON, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("last_used_at", Moment),  # NULL: never
    Column("person_id", ForeignKey("people.id")),  # NULL: a service token, of no person
    Index(
        "uq_api_tokens_service",
        "name",
        unique=True,
        sqlite_where=text("person_id IS NULL"),
        postgresql_where=text("person_id IS NULL"),
    ),
    Index(
        "uq_api_tokens_personal",
        "person_id",
        "name",
        unique=True,
        sqlite_where=text("person_id IS NOT NULL"),
        postgresql_where=text("person_id IS NOT NULL"),
    ),
)

people = Table(
    "people",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("email", Text, nullable=False, unique=True),  # normalized as in a reader token
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("password_hash", Text),  # NULL: no password
    Column("verified", Text),  # who vouches for the address; NULL: nobody
    Column("created_at", Moment, nullable=False),
    Column("disabled_at", Moment),  # NULL: active
    Column("language", Text),  # of the pages; NULL: as the browser prefers
    sqlite_autoincrement=True,
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("digest", Text, nullable=False, unique=True),  # SHA-256 of the cookie
    Column("person_id", ForeignKey("people.id"), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("last_used_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("address", Text),
    Column("user_agent", Text),
    Index(None, "person_id"),
)

invitations = Table(
    "invitations",
    metadata,
    Column("digest", Text, primary_key=True),  # SHA-256 of the code in the link
    Column("email", Text, unique=True),
    Column("role", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("invited_by", Text, nullable=False),
)

used_links = Table(
    "used_links",
    metadata,
    Column("digest", Text, primary_key=True),  # SHA-256 of the code in a link of the machine
    Column("used_at", Moment, nullable=False),
)

password_resets = Table(
    "password_resets",
    metadata,
    Column("person_id", ForeignKey("people.id"), primary_key=True),
    Column("digest", Text, nullable=False, unique=True),  # SHA-256 of the code in the link
    Column("expires_at", Moment, nullable=False),
)

# Addresses that people had before: documents may name them still.
former_emails = Table(
    "former_emails",
    metadata,
    Column("email", Text, primary_key=True),
    Column("person_id", ForeignKey("people.id"), primary_key=True),
)

# From where somebody has signed in before.
devices = Table(
    "devices",
    metadata,
    Column("person_id", ForeignKey("people.id"), primary_key=True),
    Column("digest", Text, primary_key=True),  # SHA-256 of the cookie
    Column("seen_at", Moment, nullable=False),
)

sign_in_failures = Table(
    "sign_in_failures",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", Text, nullable=False),  # SHA-256 of an account, an address or a device
    Column("at", Moment, nullable=False),
    Index(None, "key", "at"),
    Index(None, "at"),
)

# Who a person is at an identity provider.
identities = Table(
    "identities",
    metadata,
    Column("issuer", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("person_id", ForeignKey("people.id"), nullable=False),
    Column("linked_at", Moment, nullable=False),
    Column(
        "stated_at", Moment
    ),  # when the provider last said of the person what it says; NULL: never
    Index(None, "person_id"),
)

# Sign-ins through a provider that have come back, until they could no longer do so.
finished_attempts = Table(
    "finished_attempts",
    metadata,
    Column("state", Text, primary_key=True),  # SHA-256
    Column("expires_at", Moment, nullable=False),
)

groups = Table(
    "groups",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("origin", Text, nullable=False),  # who says who is in it: an issuer, or `groups.OWN`
)

group_members = Table(
    "group_members",
    metadata,
    Column("group_id", ForeignKey("groups.id"), primary_key=True),
    Column("person_id", ForeignKey("people.id"), primary_key=True),
    Column("since", Moment),  # when the person became a member; NULL: before this was recorded
    Index(None, "person_id"),
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
    Column("address", Text),  # from where; NULL: from the machine itself
    Index(None, "subject", "id"),
    sqlite_autoincrement=True,
)
