"""What was asked in Slack, so that each message is answered once."""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    conversations, messages = (
        sa.ForeignKey(name, ondelete="SET NULL") for name in ("conversations.id", "messages.id")
    )
    op.create_table(
        "slack_questions",
        sa.Column("team_id", sa.Text, primary_key=True),
        sa.Column("channel_id", sa.Text, primary_key=True),
        sa.Column("message_ts", sa.Text, primary_key=True),
        sa.Column("thread_ts", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("reply_ts", sa.Text),
        sa.Column("conversation_id", sa.Text, conversations),
        sa.Column("answer_id", sa.Integer, messages),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("process", sa.Integer, nullable=False),
        sa.Column("process_started", sa.Text, nullable=False),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
    )
    for columns in (
        ["team_id", "channel_id", "thread_ts"],
        ["taken_at"],
        ["conversation_id"],
        ["answer_id"],
    ):
        op.create_index(f"ix_slack_questions_{'_'.join(columns)}", "slack_questions", columns)
