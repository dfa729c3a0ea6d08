"""Whose feedback a request is about, and who reviews it."""

from typing import Annotated

from fastapi import Depends

from backend.api.authorization import AskerDependency
from backend.api.conversation_dependencies import GateDependency, OwnerDependency
from backend.api.dependencies import DatabaseDependency
from backend.conversations.feedback import FeedbackReview, OwnFeedback


def get_own_feedback(
    database: DatabaseDependency, owner: OwnerDependency, gate: GateDependency
) -> OwnFeedback:
    return OwnFeedback(database=database, owner=owner, gate=gate)


def get_review(
    database: DatabaseDependency, asker: AskerDependency, gate: GateDependency
) -> FeedbackReview:
    return FeedbackReview(database=database, gate=gate, actor=asker.actor)


OwnFeedbackDependency = Annotated[OwnFeedback, Depends(get_own_feedback)]
ReviewDependency = Annotated[FeedbackReview, Depends(get_review)]
