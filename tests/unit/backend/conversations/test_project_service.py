"""Who is in a project, and which conversations they see of one another."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from backend.access.people import BY_ADMIN, PeopleService
from backend.access.roles import Role
from backend.conversations.project_handover import ProjectHandover
from backend.conversations.project_service import ProjectRefusedError, ProjectService
from backend.store import audit
from backend.store.accounts import people
from backend.store.audit import Actor, AuditFilter
from backend.store.chat import conversations, new_messages, projects
from backend.store.chat.new_messages import ConversationSetting, NewQuestion
from backend.store.database import Database, open_database
from backend.store.owner import ConversationOwner
from connectors.errors import ConflictError, InvalidInputError, NotFoundError
from tests.support.accounts import add_person
from tests.support.conversations import writer
from tests.support.statements import noted_statements

ANN, BOB, EVE = (f"{name}@example.com" for name in ("ann", "bob", "eve"))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


@pytest.fixture
def services(database: Database) -> dict[str, ProjectService]:
    roles = {ANN: Role.ADMIN, BOB: Role.MEMBER, EVE: Role.MEMBER}
    return {
        email: ProjectService(
            database=database, owner=ConversationOwner(add_person(database, email, role).id)
        )
        for email, role in roles.items()
    }


def _begin(service: ProjectService, title: str, project_id: str | None) -> str:
    begun = new_messages.begin_conversation(
        service.database,
        service.owner,
        title,
        NewQuestion(text=title, filters={}),
        writer(),
        ConversationSetting(project_id=project_id),
    )
    return begun.question.conversation_id


def test_a_project_of_a_disabled_owner_is_handed_to_a_member(
    database: Database, services: dict[str, ProjectService]
) -> None:
    ann, bob, eve = (services[one] for one in (ANN, BOB, EVE))
    project = bob.create("Depot", "").id
    bob.add_member(project, EVE)
    _begin(bob, "When?", project)
    handover = ProjectHandover(database, Actor("user:ann"))
    (owned,) = handover.list_owned(BOB)
    assert (owned.id, owned.members) == (project, (EVE,))
    with pytest.raises(ConflictError, match="is not disabled"):
        handover.hand_over(project, EVE)
    accounts = PeopleService(database)
    accounts.disable(BOB)
    for given, email, error, said in (
        (project, ANN, ConflictError, "is not in this project"),
        (project, BOB, ConflictError, "is disabled"),
        (project, "nobody@example.com", NotFoundError, "no account"),
        ("never-was", EVE, NotFoundError, "no such project"),
    ):
        with pytest.raises(error, match=said):
            handover.hand_over(given, email)
    with pytest.raises(ProjectRefusedError):
        eve.change(project, "Yard", None)
    handover.hand_over(project, EVE)
    (entry, *_) = audit.list_entries(database)
    assert (entry.action, entry.actor) == ("hand_over_project", "user:ann")
    assert entry.detail == {"before": BOB, "after": EVE}
    assert eve.change(project, "Yard", None).name == "Yard"
    # What its former owner asked stays, until they are removed.
    assert _titles(eve, project) == {"When?"}
    (former,) = eve.list_members(project)
    assert former.email == BOB
    accounts.enable(BOB)
    with pytest.raises(ProjectRefusedError):
        bob.change(project, "Depot", None)
    assert handover.list_owned(BOB) == []
    with pytest.raises(NotFoundError):
        ann.get(project)


def _titles(service: ProjectService, project_id: str) -> set[str]:
    return {one.title for one in service.list_conversations(project_id)}


def _id_of(service: ProjectService) -> int:
    assert service.owner.person_id
    return service.owner.person_id


def test_a_project_exists_for_those_who_are_in_it(services: dict[str, ProjectService]) -> None:
    ann, bob, eve = services.values()
    made = bob.create("  New \n depot ", " Opens in May. ")
    assert (made.name, made.instructions, bob.is_own(made)) == ("New depot", "Opens in May.", True)
    bob.add_member(made.id, f" {EVE.upper()} ")
    assert eve.get(made.id) == made
    assert not eve.is_own(made)
    assert [one.email for one in eve.list_members(made.id)] == [EVE]
    assert (bob.list_own(), eve.list_own(), ann.list_own()) == ([made], [made], [])
    # An admin who is not in it learns nothing of it.
    attempts: tuple[Callable[[], object], ...] = (
        lambda: ann.get(made.id),
        lambda: ann.change(made.id, "x", None),
        lambda: ann.delete(made.id),
        lambda: ann.list_members(made.id),
        lambda: ann.add_member(made.id, ANN),
        lambda: ann.leave(made.id),
        lambda: ann.remove_member(made.id, eve.list_members(made.id)[0].id),
        lambda: ann.list_conversations(made.id),
        lambda: ann.get_conversation(made.id, "x"),
        lambda: ann.get("never-was"),
        lambda: ann.get("\0"),
    )
    for attempt in attempts:
        with pytest.raises(NotFoundError, match=r"^There is no such project\.$"):
            attempt()
    assert ann.find_instructions(made.id) == ""
    assert eve.find_instructions(made.id) == "Opens in May."
    assert eve.find_instructions(None) == ""


def test_who_is_added_and_who_goes_is_in_the_audit(services: dict[str, ProjectService]) -> None:
    _, bob, eve = services.values()
    bob, eve = (
        replace(one, actor=Actor(email)) for one, email in ((bob, "user:bob"), (eve, "user:eve"))
    )
    made = bob.create("Secret depot", "")
    for email in (ANN, EVE, EVE, "nobody@example.com", BOB):
        bob.add_member(made.id, email)
    bob.remove_member(made.id, bob.list_members(made.id)[0].id)
    bob.remove_member(made.id, 999)
    eve.leave(made.id)
    entries = audit.list_entries(bob.database, AuditFilter(subject=f"project:{made.id}"))
    assert [(one.actor, one.action, one.detail) for one in reversed(entries)] == [
        ("user:bob", "add_project_member", {"member": ANN}),
        ("user:bob", "add_project_member", {"member": EVE}),
        ("user:bob", "add_project_member", {"member": "nobody@example.com"}),
        ("user:bob", "remove_project_member", {"member": ANN}),
        ("user:eve", "leave_project", {"member": EVE}),
    ]
    assert "Secret" not in str(entries)


def test_only_the_owner_changes_a_project(services: dict[str, ProjectService]) -> None:
    _, bob, eve = services.values()
    made = bob.create("Depot", "")
    bob.add_member(made.id, EVE)
    for attempt in (
        lambda: eve.change(made.id, "x", None),
        lambda: eve.delete(made.id),
        lambda: eve.add_member(made.id, ANN),
        lambda: eve.remove_member(made.id, 999),
    ):
        with pytest.raises(ProjectRefusedError):
            attempt()
    assert bob.change(made.id, None, "Be formal.").name == "Depot"
    with pytest.raises(InvalidInputError, match="1 to 80 characters"):
        bob.change(made.id, " ", None)
    bob.add_member(made.id, BOB)
    bob.add_member(made.id, EVE)
    assert [one.email for one in bob.list_members(made.id)] == [EVE]
    eve.leave(made.id)
    assert (bob.list_members(made.id), eve.list_own()) == ([], [])


def test_those_in_it_see_what_those_in_it_asked(services: dict[str, ProjectService]) -> None:
    ann, bob, eve = services.values()
    made, other = bob.create("Depot", ""), bob.create("Other", "")
    for email in (EVE, ANN):
        bob.add_member(made.id, email)
    of_eve = _begin(eve, "of Eve", made.id)
    _begin(bob, "of Bob", made.id)
    elsewhere = _begin(bob, "elsewhere", other.id)
    private = _begin(eve, "private", None)
    for service in (ann, bob, eve):
        assert _titles(service, made.id) == {"of Eve", "of Bob"}
    found = bob.get_conversation(made.id, of_eve)
    assert (found.author, found.author_name) == (eve.owner, "Eve")
    for hidden in (elsewhere, private, "never-was", "\0"):
        with pytest.raises(NotFoundError, match="no such conversation"):
            eve.get_conversation(made.id, hidden)
    # Only the author asks on, and only the author lists it among their own.
    with pytest.raises(NotFoundError):
        conversations.get(bob.database, bob.owner, of_eve)
    # Of one who has left, nothing is shown; they keep it.
    eve.leave(made.id)
    assert _titles(bob, made.id) == {"of Bob"}
    with pytest.raises(NotFoundError):
        bob.get_conversation(made.id, of_eve)
    assert conversations.get(eve.database, eve.owner, of_eve).project_id == made.id


def test_conversations_outlive_their_project(services: dict[str, ProjectService]) -> None:
    _, bob, _ = services.values()
    made = bob.create("Depot", "")
    kept = _begin(bob, "of Bob", made.id)
    bob.delete(made.id)
    assert conversations.get(bob.database, bob.owner, kept).project_id is None
    with pytest.raises(NotFoundError, match="no such project"):
        _begin(bob, "too late", made.id)


def test_adding_an_address_does_not_tell_whether_it_has_an_account(
    services: dict[str, ProjectService],
) -> None:
    ann, bob, eve = services.values()
    made = bob.create("Depot", "")
    people.set_disabled(bob.database, _id_of(ann), writer().now)
    asked = []
    for email in (EVE, ANN, "nobody@example.com"):
        with noted_statements(bob.database.engine) as statements:
            bob.add_member(made.id, email)
        asked.append(tuple(statements))
    assert asked[0] == asked[1] == asked[2]
    shown = [(one.email, one.name) for one in bob.list_members(made.id)]
    assert shown == [(ANN, ""), (EVE, ""), ("nobody@example.com", "")]
    # Who asks in it shows that they are there.
    _begin(eve, "of Eve", made.id)
    assert [one.name for one in bob.list_members(made.id)] == ["", "Eve", ""]


def test_who_is_added_before_they_have_an_account_is_in_it_with_one_of_this_address(
    services: dict[str, ProjectService],
) -> None:
    _, bob, eve = services.values()
    database, made = bob.database, bob.create("Depot", "")
    bob.add_member(made.id, "New@Example.com")
    bob.add_member(made.id, "other@example.com")
    # An address that somebody claims lets nobody in until an admin vouches for it.
    people.set_email(database, _id_of(eve), "other@example.com")
    later = bob.create("Yard", "")
    bob.add_member(later.id, "other@example.com")
    assert eve.list_own() == []
    people.set_verified(database, _id_of(eve), BY_ADMIN)
    assert eve.list_own() == [made, later]
    newcomer = add_person(database, "new@example.com")
    late = ProjectService(database=database, owner=ConversationOwner(newcomer.id))
    assert late.list_own() == [made]
    (member, _) = bob.list_members(made.id)
    bob.remove_member(made.id, member.id)
    assert (late.list_own(), len(bob.list_members(made.id))) == ([], 1)


def test_the_owner_of_a_machine_has_projects_alone(database: Database) -> None:
    owner = ProjectService(database=database, owner=ConversationOwner(None))
    made = owner.create("Depot", "")
    with pytest.raises(InvalidInputError, match="no accounts here"):
        owner.add_member(made.id, ANN)
    _begin(owner, "asked", made.id)
    (found,) = owner.list_conversations(made.id)
    assert (found.author, found.author_name) == (ConversationOwner(None), "")
    assert projects.list_of(database, ConversationOwner(7)) == []
