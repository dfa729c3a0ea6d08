"""The tables of research runs, beside those of `tables.py`; `migrations/` creates and changes them."""

from sqlalchemy import JSON, Boolean, Column, ForeignKey, Index, Integer, Table, Text

from backend.store.database import Moment
from backend.store.schema.tables import metadata

research_runs = Table(
    "research_runs",
    metadata,
    Column("id", Text, primary_key=True),  # random: an address that names it tells nothing
    Column("person_id", ForeignKey("people.id")),  # NULL: of the owner of the machine
    # What the owner of the machine acted as; NULL for people, whose rights are resolved anew.
    Column("acting_as", JSON(none_as_null=True)),
    Column("conversation_id", ForeignKey("conversations.id", ondelete="CASCADE"), index=True),
    Column("project_id", ForeignKey("projects.id", ondelete="SET NULL"), index=True),
    # NULL: the default assistant. No foreign key: a run whose assistant is gone goes on with no other one.
    Column("assistant_id", Text),
    Column("question", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("confirms_plan", Boolean, nullable=False),  # the plan waits for the person
    Column("record", Text, nullable=False),  # JSON: what another process needs to go on
    Column("tasks", Integer, nullable=False),  # in the record
    Column("tasks_done", Integer, nullable=False),
    # What the messages before the question rest on, and so all of the run.
    Column("history_document_ids", JSON, nullable=False),
    # What events name, each by its place in this list, which only grows.
    Column("document_ids", JSON, nullable=False),
    Column("has_report", Boolean, nullable=False),
    Column("problem", Text),  # why there is no report
    Column("last_event", Integer, nullable=False),
    Column("fence", Integer, nullable=False),  # increases with every claim
    # The process that works on it; NULL: none does.
    Column("host", Text),
    Column("process", Integer),
    Column("process_started", Text),
    Column("lease_until", Moment),  # renewed by its process before this time
    Column("claimed_at", Moment),  # last
    Column("queued_at", Moment),  # since when it waits for a process
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("ended_at", Moment),
    Column("seen_at", Moment),  # when its owner first saw how it ended
    Index(None, "person_id", "updated_at"),
    Index(None, "ended_at"),
)

research_events = Table(
    "research_events",
    metadata,
    Column("run_id", ForeignKey("research_runs.id", ondelete="CASCADE"), primary_key=True),
    Column("first", Integer, primary_key=True),  # the number of its first event
    Column("last", Integer, nullable=False),
    Column("payload", Text, nullable=False),  # JSON: number, name, data and documents of each
)
