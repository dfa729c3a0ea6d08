"""The tables of language models and of their budgets, beside those of `tables.py`; `migrations/` creates and changes them."""

from sqlalchemy import BigInteger, Boolean, Column, Date, Float, ForeignKey, Integer, Table, Text

from backend.store.schema.tables import metadata

language_models = Table(
    "language_models",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("base_url", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("key", Text),  # encrypted by `credential_vault`
    Column("context_window", Integer, nullable=False),
    Column("sees_pictures", Boolean, nullable=False),
    Column("calls_tools", Boolean, nullable=False),
    Column("reasons", Boolean, nullable=False),
    Column("input_price", Float),  # of a million tokens; NULL: not known
    Column("output_price", Float),
)

# What language models are used for: at most one for each role.
model_roles = Table(
    "model_roles",
    metadata,
    Column("role", Text, primary_key=True),
    Column("model_id", ForeignKey("language_models.id"), nullable=False),
)

# Outlives the models: it names them.
model_usage = Table(
    "model_usage",
    metadata,
    Column("day", Date, primary_key=True),  # of UTC
    Column("person_id", Integer, primary_key=True, autoincrement=False),  # 0: nobody's
    Column("model", Text, primary_key=True),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("calls", Integer, nullable=False),
)

# Only groups that have a budget.
group_budgets = Table(
    "group_budgets",
    metadata,
    Column("group_id", ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True),
    Column("tokens", BigInteger, nullable=False),  # of all its members on a day of UTC
)

# Only people who have a budget of their own.
person_budgets = Table(
    "person_budgets",
    metadata,
    Column("person_id", ForeignKey("people.id", ondelete="CASCADE"), primary_key=True),
    Column("tokens", BigInteger, nullable=False),  # on a day of UTC
)
