"""Projects: instructions and conversations that several people share. Others' projects do not exist."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from backend.store.accounts.people import SHOWN_NAME, Person
from backend.store.chat.project_membership import is_in_project
from backend.store.database import Database, inserting
from backend.store.files import file_release
from backend.store.owner import ConversationOwner
from backend.store.random_ids import make_random_id
from backend.store.schema.conversation_tables import conversations, messages
from backend.store.schema.project_tables import project_members, projects
from backend.store.schema.tables import people
from backend.store.schema.user_file_tables import project_files, user_files
from connectors.errors import NotFoundError
from indexing.text.normalization import is_storable


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    id: str
    owner: ConversationOwner
    name: str
    instructions: str
    """Given to the language model with each question that is asked in it."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectUse:
    """What a project holds, and when it was used last, as everybody in it sees it."""

    owner_name: str
    """The name or the address of a person; nothing for the owner of the machine."""
    members: int
    """Besides its owner."""
    conversations: int
    used_at: datetime | None
    """When the last question was asked in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectConversation:
    id: str
    title: str
    updated_at: datetime
    author: ConversationOwner
    author_name: str
    """The name or the address of a person; nothing for the owner of the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectMember:
    id: int
    """Of the membership."""
    email: str
    """As it was added."""
    name: str
    """Nothing until they have asked in the project or added a file: the list tells of no address whether it has an account."""
    person_id: int | None


_IS_ACTIVE = or_(
    exists().where(
        conversations.c.project_id == project_members.c.project_id,
        conversations.c.person_id == project_members.c.person_id,
    ),
    exists().where(
        project_files.c.project_id == project_members.c.project_id,
        project_files.c.file_id == user_files.c.id,
        user_files.c.person_id == project_members.c.person_id,
    ),
)
_SELECT_MEMBERS = select(
    project_members.c.id,
    project_members.c.email,
    case((_IS_ACTIVE, SHOWN_NAME), else_="").label("name"),
    project_members.c.person_id,
).outerjoin_from(project_members, people, people.c.id == project_members.c.person_id)
_IS_MEMBER = exists().where(
    project_members.c.project_id == projects.c.id,
    project_members.c.person_id == conversations.c.person_id,
)
_IS_OWNER = or_(
    projects.c.person_id == conversations.c.person_id,
    projects.c.person_id.is_(None) & conversations.c.person_id.is_(None),
)
_MEMBERS_OF_EACH = (
    select(func.count())
    .where(project_members.c.project_id == projects.c.id)
    .correlate(projects)
    .scalar_subquery()
)
# Of somebody who is not in it any more, nothing is shown.
_SELECT_CONVERSATIONS = (
    select(
        conversations.c.id,
        conversations.c.title,
        conversations.c.updated_at,
        conversations.c.person_id,
        SHOWN_NAME.label("author_name"),
    )
    .join(projects, projects.c.id == conversations.c.project_id)
    .outerjoin(people, people.c.id == conversations.c.person_id)
    .where(or_(_IS_OWNER, _IS_MEMBER))
)


def make_missing_project_error() -> NotFoundError:
    """Return the error for a project that is missing, the same as for another person's."""
    return NotFoundError("There is no such project.")


def list_of(database: Database, owner: ConversationOwner) -> list[Project]:
    """Return those that somebody is in, by their names."""
    query = select(projects).where(is_in_project(owner))
    with database.reading() as connection:
        rows = connection.execute(query.order_by(func.lower(projects.c.name), projects.c.id))
        return [_to_project(row) for row in rows.mappings()]


def list_uses(database: Database, owner: ConversationOwner) -> Mapping[str, ProjectUse]:
    """Return what is in each project that somebody is in, by its id."""
    with database.reading() as connection:
        rows = connection.execute(_select_uses(owner)).mappings()
        return {row["id"]: _to_use(row) for row in rows}


def _select_uses(owner: ConversationOwner) -> Select[Any]:
    shown = and_(conversations.c.project_id == projects.c.id, or_(_IS_OWNER, _IS_MEMBER))
    return (
        select(
            projects.c.id,
            SHOWN_NAME.label("owner_name"),
            _MEMBERS_OF_EACH.label("members"),
            func.count(conversations.c.id).label("conversations"),
            func.max(conversations.c.updated_at).label("used_at"),
        )
        .select_from(projects)
        .outerjoin(people, people.c.id == projects.c.person_id)
        .outerjoin(conversations, shown)
        .where(is_in_project(owner))
        .group_by(projects.c.id, people.c.id)
    )


def get(database: Database, owner: ConversationOwner, project_id: str) -> Project:
    """Return a project that the asker is in. Raises NotFoundError: there is none, or the asker is not in it."""
    if not is_storable(project_id):
        raise make_missing_project_error()
    query = select(projects).where(projects.c.id == project_id, is_in_project(owner))
    with database.reading() as connection:
        row = connection.execute(query).mappings().one_or_none()
    if row is None:
        raise make_missing_project_error()
    return _to_project(row)


def add(
    database: Database, owner: ConversationOwner, name: str, instructions: str, now: datetime
) -> str:
    """Return the id of the new project."""
    project_id = make_random_id()
    row = {
        "id": project_id,
        "person_id": owner.person_id,
        "name": name,
        "instructions": instructions,
        "created_at": now,
    }
    with database.writing() as connection:
        connection.execute(insert(projects).values(row))
    return project_id


def change(database: Database, project_id: str, name: str, instructions: str) -> None:
    changed = update(projects).where(projects.c.id == project_id)
    with database.writing() as connection:
        connection.execute(changed.values(name=name, instructions=instructions))


def remove(database: Database, project_id: str) -> None:
    """Remove a project; its conversations stay with those who asked."""
    in_project = conversations.c.project_id == project_id
    with database.writing() as connection:
        # Nobody begins a conversation in it meanwhile.
        gone = select(projects.c.id).where(projects.c.id == project_id).with_for_update()
        connection.execute(gone).all()
        file_release.release_of_project(connection, project_id)
        connection.execute(update(conversations).where(in_project).values(project_id=None))
        connection.execute(delete(projects).where(projects.c.id == project_id))


def add_member(database: Database, project_id: str, email: str) -> bool:
    """Add whoever has an address that somebody vouches for, or is the first to have it. The work is the same for every address.

    Return whether the address was not in the project before.
    """
    has_it = (people.c.email == email, people.c.verified.is_not(None))
    person = select(people.c.id).where(*has_it).scalar_subquery()
    with database.writing() as connection:
        added = inserting(connection, project_members).on_conflict_do_nothing()
        row = {"project_id": project_id, "email": email, "person_id": person}
        inserted = added.values(row).returning(project_members.c.id)
        return connection.scalar(inserted) is not None


def find_member(database: Database, project_id: str, member_id: int) -> ProjectMember | None:
    query = _SELECT_MEMBERS.where(
        project_members.c.project_id == project_id, project_members.c.id == member_id
    )
    with database.reading() as connection:
        row = connection.execute(query).mappings().one_or_none()
    return None if row is None else ProjectMember(**row)


def remove_member(database: Database, project_id: str, member_id: int) -> list[str]:
    """Return the address that was removed, if there was one."""
    return _remove_members(database, project_id, project_members.c.id == member_id)


def remove_person(database: Database, project_id: str, person_id: int) -> list[str]:
    """Remove somebody, and return by which of their addresses they were added."""
    return _remove_members(database, project_id, project_members.c.person_id == person_id)


def _remove_members(database: Database, project_id: str, which: ColumnElement[bool]) -> list[str]:
    gone = delete(project_members).where(project_members.c.project_id == project_id, which)
    with database.writing() as connection:
        returned = gone.returning(project_members.c.person_id, project_members.c.email)
        removed = connection.execute(returned).all()
        for person_id in sorted(one.person_id for one in removed if one.person_id is not None):
            file_release.release_of_member(connection, project_id, person_id)
        return sorted(one.email for one in removed)


def list_members(database: Database, project_id: str) -> list[ProjectMember]:
    """Return who is in it besides its owner, by the addresses that were added."""
    query = _SELECT_MEMBERS.where(project_members.c.project_id == project_id)
    with database.reading() as connection:
        rows = connection.execute(query.order_by(project_members.c.email)).mappings()
        return [ProjectMember(**row) for row in rows]


def list_owned(database: Database, person_id: int) -> list[str]:
    """Return the ids of the projects of one person, in the order in which they were made."""
    query = select(projects.c.id).where(projects.c.person_id == person_id)
    with database.reading() as connection:
        return list(connection.scalars(query.order_by(projects.c.created_at, projects.c.id)))


def find_owner_id(database: Database, project_id: str) -> int | None:
    """Return whose a project is, for as long as the transaction lasts; None: there is none, or it is of the owner of the machine."""
    if not is_storable(project_id):
        return None
    query = select(projects.c.person_id).where(projects.c.id == project_id)
    with database.writing() as connection:
        return connection.scalar(query.with_for_update())


def hand_over(database: Database, project_id: str, former: Person, new: Person) -> None:
    """Make a member the owner, and the former owner a member: what they asked in it stays in it."""
    of_project = project_members.c.project_id == project_id
    changed = update(projects).where(projects.c.id == project_id).values(person_id=new.id)
    row = {"project_id": project_id, "email": former.email, "person_id": former.id}
    with database.writing() as connection:
        connection.execute(changed)
        connection.execute(
            delete(project_members).where(
                of_project,
                or_(
                    project_members.c.person_id.in_((former.id, new.id)),
                    and_(
                        project_members.c.email == former.email,
                        project_members.c.person_id.is_(None),
                    ),
                ),
            )
        )
        connection.execute(inserting(connection, project_members).values(row))


def list_conversations(
    database: Database, project_id: str, limit: int
) -> list[ProjectConversation]:
    """Return the conversations of all who are in it, the last used one first."""
    query = _SELECT_CONVERSATIONS.where(projects.c.id == project_id).order_by(
        conversations.c.updated_at.desc(), conversations.c.id.desc()
    )
    with database.reading() as connection:
        return [_to_conversation(row) for row in connection.execute(query.limit(limit)).mappings()]


def find_conversation(
    database: Database, project_id: str, conversation_id: str
) -> ProjectConversation | None:
    if not is_storable(conversation_id):
        return None
    query = _SELECT_CONVERSATIONS.where(
        projects.c.id == project_id, conversations.c.id == conversation_id
    )
    with database.reading() as connection:
        row = connection.execute(query).mappings().one_or_none()
    return None if row is None else _to_conversation(row)


def find_conversation_of(
    database: Database, project_id: str, message_id: int
) -> ProjectConversation | None:
    """Return the conversation of a project in which a message stands."""
    query = _SELECT_CONVERSATIONS.join(messages, messages.c.conversation_id == conversations.c.id)
    query = query.where(projects.c.id == project_id, messages.c.id == message_id)
    with database.reading() as connection:
        row = connection.execute(query).mappings().one_or_none()
    return None if row is None else _to_conversation(row)


def _to_use(row: Any) -> ProjectUse:
    return ProjectUse(**{name: value for name, value in row.items() if name != "id"})


def _to_project(row: Any) -> Project:
    values = dict(row)
    return Project(owner=ConversationOwner(values.pop("person_id")), **values)


def _to_conversation(row: Any) -> ProjectConversation:
    values = dict(row)
    return ProjectConversation(author=ConversationOwner(values.pop("person_id")), **values)
