"""The tables of assistants, beside those of `tables.py`; `migrations/` creates and changes them."""

from sqlalchemy import JSON, Boolean, Column, Float, ForeignKey, Index, Table, Text, true

from backend.store.database import Moment
from backend.store.schema.tables import metadata

assistants = Table(
    "assistants",
    metadata,
    Column("id", Text, primary_key=True),  # random; `default` is that of all
    Column("person_id", ForeignKey("people.id")),  # NULL: of the owner of the machine
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("instructions", Text, nullable=False),
    Column("starters", JSON, nullable=False),
    Column("sources", JSON, nullable=False),  # names; an empty list limits nothing
    Column("sets", JSON, nullable=False),  # as the sources
    # NULL: the default model, which also answers in place of one that is removed.
    Column("model_id", ForeignKey("language_models.id", ondelete="SET NULL")),
    Column("removed_model", Text),  # its name, once it is removed
    Column("temperature", Float),  # NULL: that of the model
    Column("searches", Boolean, nullable=False),
    Column("searches_web", Boolean, nullable=False, server_default=true()),
    Column("allowed_domains", JSON(none_as_null=True)),  # of the web; NULL limits nothing
    Column("blocked_domains", JSON(none_as_null=True)),
    Column("visibility", Text, nullable=False),  # `mine`, `groups` or `all`
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Index(None, "person_id"),
)

# Whose members an assistant with the visibility `groups` is for.
assistant_groups = Table(
    "assistant_groups",
    metadata,
    Column("assistant_id", ForeignKey("assistants.id", ondelete="CASCADE"), primary_key=True),
    Column("group_id", ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True),
    Index(None, "group_id"),
)
