"""Who is in a project: its owner and its members."""

from sqlalchemy import ColumnElement, exists, or_

from backend.store.conversations import ConversationOwner
from backend.store.project_tables import project_members, projects


def is_in_project(owner: ConversationOwner) -> ColumnElement[bool]:
    """Whether somebody is in the project of a row."""
    if owner.person_id is None:
        return projects.c.person_id.is_(None)
    is_member = exists().where(
        project_members.c.project_id == projects.c.id,
        project_members.c.person_id == owner.person_id,
    )
    return or_(projects.c.person_id == owner.person_id, is_member)
