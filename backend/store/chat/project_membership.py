"""Who is in a project: its owner and its members."""

from sqlalchemy import ColumnElement, select

from backend.store.owner import ConversationOwner
from backend.store.schema.project_tables import project_members, projects


def is_in_project(owner: ConversationOwner) -> ColumnElement[bool]:
    """Return whether somebody is in the project of a row."""
    if owner.person_id is None:
        return projects.c.person_id.is_(None)
    own = select(projects.c.id).where(projects.c.person_id == owner.person_id)
    joined = select(project_members.c.project_id)
    # Found by the person first: few of all projects are somebody's.
    return projects.c.id.in_(
        own.union(joined.where(project_members.c.person_id == owner.person_id))
    )
