"""What answers say, as it is searched, those of before included."""

from collections.abc import Iterator, Sequence

import sqlalchemy as sa
from alembic import op

from indexing.text.markdown_links import strip_link_targets
from indexing.text.normalization import fold

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None

_BATCH = 500
_MESSAGES = sa.table(
    "messages", *map(sa.column, ("id", "conversation_id", "role", "text", "status"))
)


def upgrade() -> None:
    searched = op.create_table(
        "answer_texts",
        sa.Column(
            "message_id",
            sa.Integer,
            sa.ForeignKey("messages.id", ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.Column("folded_text", sa.Text, nullable=False),
    )
    for answers in _read_answers(op.get_bind()):
        op.bulk_insert(
            searched,
            [
                {
                    "message_id": row["id"],
                    "conversation_id": row["conversation_id"],
                    "folded_text": fold(strip_link_targets(row["text"])),
                }
                for row in answers
            ],
        )
    op.create_index("ix_answer_texts_conversation_id", "answer_texts", ["conversation_id"])


def _read_answers(connection: sa.Connection) -> Iterator[Sequence[sa.RowMapping]]:
    """Yield the answers that have ended and say something, in portions."""
    columns = _MESSAGES.c
    ended = sa.and_(columns.role == "assistant", columns.status != "running", columns.text != "")
    query = sa.select(columns.id, columns.conversation_id, columns.text).where(ended)
    query = query.order_by(columns.id).limit(_BATCH)
    last = 0
    while found := connection.execute(query.where(columns.id > last)).mappings().all():
        yield found
        last = found[-1]["id"]
