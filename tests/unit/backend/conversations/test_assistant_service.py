"""Who may use, see and change which assistant, and what may be set of one."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from typing import Any

import pytest

from backend.access.groups import GroupService
from backend.access.own_readers import find_own_readers
from backend.access.roles import Role
from backend.chat.turn_settings import make_settings, read_default_settings
from backend.conversations.assistant_service import (
    AssistantGoneError,
    AssistantRefusedError,
    AssistantService,
    AssistantUser,
)
from backend.conversations.assistant_values import (
    LONGEST_INSTRUCTIONS,
    validate_values,
)
from backend.store import audit
from backend.store.accounts import people
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from backend.store.chat import assistants
from backend.store.chat.assistants import DEFAULT_ID, AssistantValues, Visibility
from backend.store.database import Database, open_database
from backend.store.documents import document_sets
from backend.store.documents.document_set_rules import RuleKind, SetRule
from backend.store.documents.document_sets import SetValues
from backend.store.llm import language_models
from backend.store.owner import ConversationOwner
from backend.store.sync import sources as stored_sources
from backend.web_search.domains import ANY_DOMAIN
from connectors.access import Readers
from connectors.errors import ConflictError, InvalidInputError, NotFoundError
from indexing.index.protocols import Filters
from tests.support.accounts import add_person
from tests.support.conversations import START
from tests.support.language_models import make_values

ALL_SOURCES = frozenset({"handbook", "wiki"})
MINE = AssistantValues(name="Travel desk")
FOR_ALL = replace(MINE, visibility=Visibility.ALL)
FOR_HR = replace(MINE, visibility=Visibility.GROUPS, groups=("hr",))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


@pytest.fixture
def ann(database: Database) -> AssistantService:
    """Of an admin."""
    GroupService(database).create("hr")
    return _service_of(database, add_person(database, "ann@example.com", Role.ADMIN))


@pytest.fixture
def bob(database: Database, ann: AssistantService) -> AssistantService:
    """Of a member of the group `hr`."""
    del ann
    person = add_person(database, "bob@example.com")
    GroupService(database).add_member("hr", person.email)
    return _service_of(database, person)


@pytest.fixture
def eve(database: Database, ann: AssistantService) -> AssistantService:
    del ann
    return _service_of(database, add_person(database, "eve@example.com"))


def _service_of(
    database: Database, person: Person, sources: frozenset[str] = ALL_SOURCES
) -> AssistantService:
    user = AssistantUser(
        owner=ConversationOwner(person.id),
        readers=find_own_readers(database, person),
        is_admin=person.role == Role.ADMIN,
        actor=Actor(person.email),
    )
    return AssistantService(database=database, user=user, find_sources=lambda: sources)


def _names(service: AssistantService) -> list[str]:
    return [one.values.name for one in service.list_usable()]


def _is_missing(service: AssistantService, assistant_id: str) -> bool:
    """Whether it is as if there were none, whatever is tried."""
    answers = []
    for act in (
        lambda: service.get(assistant_id),
        lambda: service.find_settings(assistant_id),
        lambda: service.change(assistant_id, {"name": "x"}),
        lambda: service.delete(assistant_id),
    ):
        try:
            act()
        except NotFoundError as error:
            answers.append(str(error))
    with pytest.raises(NotFoundError) as never_was:
        service.get("never-was")
    return answers == [str(never_was.value)] * 4


def test_what_is_ones_own_exists_for_nobody_else(
    ann: AssistantService, bob: AssistantService, eve: AssistantService
) -> None:
    own = bob.create(MINE)
    assert (own.is_mine, own.may_change, own.owner_name) == (True, True, "Bob")
    assert bob.get(own.id) == own
    # Admins too: what somebody keeps for themselves is not looked after.
    assert _is_missing(ann, own.id)
    assert _is_missing(eve, own.id)
    assert _names(eve) == ["Default assistant"]
    assert _names(bob) == ["Default assistant", "Travel desk"]


def test_what_is_shared_with_a_group_is_for_its_members_as_of_now(
    ann: AssistantService, bob: AssistantService, eve: AssistantService
) -> None:
    shared = ann.create(FOR_HR)
    seen = bob.get(shared.id)
    assert (seen.is_mine, seen.may_change, seen.owner_name) == (False, False, "Ann")
    assert seen.values.groups == ()
    assert ann.get(shared.id).values.groups == ("hr",)
    assert _is_missing(eve, shared.id)
    without = replace(bob, user=replace(bob.user, readers=Readers.of()))
    assert _is_missing(without, shared.id)
    GroupService(ann.database).rename("hr", "people")
    assert _is_missing(bob, shared.id)


def test_what_is_for_all_is_changed_by_admins_alone(
    ann: AssistantService, bob: AssistantService
) -> None:
    shared = ann.create(FOR_ALL)
    assert not bob.get(shared.id).may_change
    with pytest.raises(AssistantRefusedError, match="Only its owner or an admin"):
        bob.change(shared.id, {"name": "x"})
    with pytest.raises(AssistantRefusedError):
        bob.delete(shared.id)
    other = _service_of(ann.database, add_person(ann.database, "cid@example.com", Role.ADMIN))
    assert other.change(shared.id, {"name": "Trips"}).values.name == "Trips"
    other.delete(shared.id)
    assert _is_missing(bob, shared.id)
    audited = {
        one.action: one.detail
        for one in audit.list_entries(ann.database)
        if "assistant:" in one.subject
    }
    assert sorted(audited) == ["add_assistant", "change_assistant", "delete_assistant"]
    added, renamed = audited["add_assistant"], audited["delete_assistant"]
    assert (added["name"], renamed["name"]) == (FOR_ALL.name, "Trips")
    assert audited["change_assistant"] == {"before": added, "after": renamed}


def test_what_an_assistant_was_before_is_read_in_the_transaction_of_its_change(
    ann: AssistantService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another admin renames it after this one was let in, and before this one's change is written."""
    shared = ann.create(FOR_ALL)
    other = _service_of(ann.database, add_person(ann.database, "cid@example.com", Role.ADMIN))
    begin = Database.transaction

    def rename_first(database: Database) -> AbstractContextManager[Database]:
        monkeypatch.setattr(Database, "transaction", begin)
        other.change(shared.id, {"name": "Renamed meanwhile"})
        return begin(database)

    monkeypatch.setattr(Database, "transaction", rename_first)
    changed = ann.change(shared.id, {"description": "Of trips."})
    assert (changed.values.name, changed.values.description) == ("Renamed meanwhile", "Of trips.")
    last = audit.list_entries(ann.database)[0]
    assert last.action == "change_assistant"
    # The description is not among what the audit tells.
    assert last.detail["before"] == last.detail["after"]
    assert "Renamed meanwhile" in str(last.detail["before"])


def test_only_admins_share(ann: AssistantService, bob: AssistantService) -> None:
    own = bob.create(MINE)
    for shared in (FOR_ALL, FOR_HR):
        with pytest.raises(AssistantRefusedError, match="Only an admin may share"):
            bob.create(shared)
        changes = {"visibility": shared.visibility, "groups": shared.groups}
        with pytest.raises(AssistantRefusedError, match="Only an admin may share"):
            bob.change(own.id, changes)
    assert bob.get(own.id).values == MINE
    # One who is an admin no longer takes back what they had shared, and changes nothing of it for others.
    shared_before = ann.create(FOR_ALL)
    former = replace(ann, user=replace(ann.user, is_admin=False))
    with pytest.raises(AssistantRefusedError):
        former.change(shared_before.id, {"instructions": "Say yes."})
    assert former.change(shared_before.id, {"visibility": Visibility.MINE}).values == MINE


def test_a_service_token_owns_none_and_uses_what_is_for_it(
    ann: AssistantService, bob: AssistantService
) -> None:
    own, shared = bob.create(MINE), ann.create(FOR_ALL)
    user = AssistantUser(
        owner=None, readers=Readers.of("group:hr"), is_admin=False, actor=Actor("token:x")
    )
    token = replace(ann, user=user)
    assert [one.id for one in token.list_usable()] == [DEFAULT_ID, shared.id]
    assert _is_missing(token, own.id)
    assert token.get(ann.create(FOR_HR).id).values.name == "Travel desk"
    with pytest.raises(AssistantRefusedError, match="belong to people"):
        token.create(MINE)


def test_the_default_assistant_stays_and_admins_change_what_it_says(
    ann: AssistantService, bob: AssistantService
) -> None:
    with pytest.raises(AssistantRefusedError, match="cannot be deleted"):
        ann.delete(DEFAULT_ID)
    with pytest.raises(InvalidInputError, match="not sources"):
        ann.change(DEFAULT_ID, {"sources": ("wiki",)})
    with pytest.raises(AssistantRefusedError):
        bob.change(DEFAULT_ID, {"instructions": "Rhyme."})
    with pytest.raises(AssistantRefusedError):
        bob.delete(DEFAULT_ID)
    changed = ann.change(DEFAULT_ID, {"instructions": "Be brief.", "starters": ("Who?",)})
    assert (changed.is_default, changed.is_mine) == (True, False)
    assert read_default_settings(ann.database).instructions == "Be brief."
    assert bob.find_settings_of_conversation(None).instructions == "Be brief."


def test_the_default_assistant_is_nobodys_on_a_machine_without_accounts(database: Database) -> None:
    owner = AssistantUser(
        owner=ConversationOwner(None), readers=Readers.of(), is_admin=True, actor=audit.OWNER
    )
    service = AssistantService(database=database, user=owner, find_sources=lambda: ALL_SOURCES)
    own = service.create(MINE)
    assert [(one.id, one.is_mine) for one in service.list_usable()] == [
        (DEFAULT_ID, False),
        (own.id, True),
    ]


def test_a_source_that_one_may_not_see_is_not_told(
    ann: AssistantService, eve: AssistantService
) -> None:
    shared = ann.create(replace(FOR_ALL, sources=("handbook", "wiki")))
    partly = replace(eve, find_sources=lambda: frozenset({"wiki"}))
    assert partly.get(shared.id).values.sources == ("wiki",)
    nothing = replace(eve, find_sources=frozenset)
    seen = nothing.get(shared.id)
    # A scope of deleted sources looks the same.
    assert (seen.values.sources, seen.is_limited) == ((), True)
    assert [one.values.sources for one in nothing.list_usable()] == [(), ()]
    # What a turn is narrowed to stays the whole scope: rights are the index's to decide.
    assert nothing.find_settings(shared.id).scope.sources == ALL_SOURCES


def test_a_scope_names_no_source_that_its_author_may_not_see(eve: AssistantService) -> None:
    partly = replace(eve, find_sources=lambda: frozenset({"wiki"}))
    messages = []
    for name in ("handbook", "missing"):
        with pytest.raises(InvalidInputError) as refused:
            partly.create(replace(MINE, sources=("wiki", name)))
        messages.append(str(refused.value).replace(name, ""))
        with pytest.raises(InvalidInputError):
            partly.find_changed_settings(None, {"sources": (name,)})
    assert messages[0] == messages[1]
    own = eve.create(replace(MINE, sources=("wiki", "handbook")))
    # Changing something else keeps what cannot be seen now; it never widens the scope.
    partly.change(own.id, {"name": "Other"})
    tried = partly.find_changed_settings(own.id, {"instructions": "Rhyme."})
    assert (tried.instructions, tried.scope.sources) == ("Rhyme.", ALL_SOURCES)
    assert eve.get(own.id).values.sources == ("wiki", "handbook")
    with pytest.raises(InvalidInputError):
        partly.change(own.id, {"sources": ("handbook",)})


def test_limits_that_the_editor_may_not_see_stay_beside_those_that_they_choose(
    ann: AssistantService,
) -> None:
    database = ann.database
    _add_set(database, "Policies", "public")
    _add_set(database, "Salaries", "group:hr")
    GroupService(database).add_member("hr", "ann@example.com")
    of_hr = _service_of(database, people.get_by_email(database, "ann@example.com"))
    limits: dict[str, Any] = {"sources": ("handbook", "wiki"), "sets": ("Policies", "Salaries")}
    made = of_hr.create(replace(FOR_ALL, **limits))
    assert not of_hr.get(made.id).hides_limits
    dan = add_person(database, "dan@example.com", Role.ADMIN)
    partly = _service_of(database, dan, frozenset({"wiki", "notes"}))
    assert partly.get(made.id).hides_limits
    # Who may not change it is told no more than that it is limited.
    eve = _service_of(database, add_person(database, "eve@example.com"), frozenset({"wiki"}))
    assert not eve.get(made.id).hides_limits
    tried = partly.find_changed_settings(made.id, {"sources": ("notes",)})
    assert tried.scope.sources == frozenset({"notes", "handbook"})
    changed = partly.change(made.id, {"sources": ("notes",), "sets": ()})
    assert (changed.values.sources, changed.values.sets) == (("notes",), ())
    assert changed.hides_limits
    kept = of_hr.get(made.id).values
    assert set(kept.sources) == {"handbook"}
    assert kept.sets == ("Salaries",)
    assert partly.find_settings(made.id).scope.sources == frozenset({"notes", "handbook"})
    everything = partly.change(made.id, {"sources": (), "sets": ()})
    assert (everything.is_limited, everything.hides_limits) == (False, False)
    assert partly.find_settings(made.id).scope == Filters()


def test_one_whose_groups_were_deleted_is_changed_without_choosing_others(
    ann: AssistantService,
) -> None:
    shared = ann.create(FOR_HR)
    GroupService(ann.database).delete("hr")
    stored = {"visibility": Visibility.GROUPS, "groups": ()}
    assert ann.change(shared.id, {"description": "Of trips."}).values.groups == ()
    assert ann.change(shared.id, {"name": "Trips", **stored}).values.name == "Trips"
    ann.change(shared.id, {"visibility": Visibility.ALL})
    with pytest.raises(InvalidInputError, match="Choose at least one group"):
        ann.change(shared.id, stored)


def test_a_conversation_says_when_its_assistant_is_gone(
    ann: AssistantService, bob: AssistantService
) -> None:
    shared = ann.create(FOR_HR)
    assert bob.find_settings_of_conversation(shared.id).searches
    ann.change(shared.id, {"visibility": Visibility.MINE})
    with pytest.raises(AssistantGoneError, match=r"no longer available\. Use the default"):
        bob.find_settings_of_conversation(shared.id)
    ann.delete(shared.id)
    with pytest.raises(ConflictError, match="no longer available"):
        ann.find_settings_of_conversation(shared.id)


def test_models_and_groups_have_to_exist(ann: AssistantService) -> None:
    with pytest.raises(InvalidInputError, match="no language model named large"):
        ann.create(replace(MINE, model="large"))
    with pytest.raises(InvalidInputError, match="no group sales"):
        ann.create(replace(FOR_HR, groups=("hr", "sales")))
    language_models.add(ann.database, make_values("large", "https://llm.example.com/v1"), None)
    assert ann.create(replace(MINE, model="large", temperature=0.0)).values.model == "large"


def test_a_model_that_is_removed_stays_named_until_another_is_chosen(ann: AssistantService) -> None:
    for name in ("large", "small"):
        language_models.add(ann.database, make_values(name, "https://llm.example.com/v1"), None)
    made = ann.create(replace(MINE, model="large"))
    assert not made.model_removed
    language_models.remove(ann.database, language_models.find(ann.database, "large").id)
    fresh = replace(ann)
    shown = fresh.get(made.id)
    assert (shown.values.model, shown.model_removed) == ("large", True)
    assert fresh.find_settings(made.id).model == "large"
    assert fresh.find_changed_settings(made.id, {"model": "large"}).model == "large"
    kept = fresh.change(made.id, {"model": "large", "description": "As before"})
    assert (kept.values.model, kept.model_removed) == ("large", True)
    with pytest.raises(InvalidInputError, match="no language model named large"):
        fresh.create(replace(MINE, model="large"))
    changed = fresh.change(made.id, {"model": "small"})
    assert (changed.values.model, changed.model_removed) == ("small", False)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"name": " "}, "The name has 1 to 80 characters on one line."),
        ({"name": "x" * 81}, "The name may have 80 characters"),
        ({"name": "a\x07b"}, "on one line"),
        (
            {"instructions": "x" * (LONGEST_INSTRUCTIONS + 1)},
            "may have 4,000 characters, these are 4,001",
        ),
        ({"instructions": "\0"}, "an invalid character"),
        ({"starters": tuple(map(str, range(9)))}, "at most 8 starters"),
        ({"starters": ("x" * 201,)}, "A starter may have 200"),
        ({"temperature": 2.5}, "a number from 0 to 2"),
        ({"temperature": float("nan")}, "a number from 0 to 2"),
        ({"visibility": Visibility.GROUPS}, "Choose at least one group"),
        ({"sets": (" ",)}, "The name of a document set"),
        ({"sources": tuple(map(str, range(101)))}, "at most 100 sources"),
        ({"allowed_domains": ("a b",)}, "is not a domain"),
        ({"blocked_domains": tuple(f"{n}.example.com" for n in range(101))}, "at most 100 domains"),
    ],
)
def test_a_value_that_is_not_valid_is_refused(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInputError, match=sentence):
        validate_values(replace(MINE, **values))


def test_values_are_cleaned() -> None:
    cleaned = validate_values(
        AssistantValues(
            name="  Travel \n desk ",
            instructions=" Line\nline \n",
            starters=("Who?", "", " Who? "),
            sets=("a", "a"),
            allowed_domains=("https://www.Example.com/x", "example.com"),
            groups=("hr",),
        )
    )
    assert cleaned == AssistantValues(
        name="Travel desk",
        instructions="Line\nline",
        starters=("Who?",),
        sets=("a",),
        allowed_domains=("example.com",),
    )


def test_an_empty_scope_is_everything() -> None:
    assert make_settings(MINE).scope == Filters()
    both = make_settings(replace(MINE, sources=("wiki",), sets=("hr",)))
    assert both.scope == Filters(sources=frozenset({"wiki"}), sets=frozenset({"hr"}))


def test_domains_narrow_the_web() -> None:
    assert make_settings(MINE).domains == ANY_DOMAIN
    narrowed = replace(MINE, allowed_domains=("example.com",), blocked_domains=("ads.example.com",))
    domains = make_settings(narrowed).domains
    assert domains.permits("https://law.example.com/leave")
    assert not domains.permits("https://ads.example.com/")
    assert not domains.permits("https://example.org/")


def test_nothing_of_it_is_stored_where_it_is_only_tried(bob: AssistantService) -> None:
    settings = bob.find_changed_settings(None, {"instructions": "Rhyme.", "sources": ("wiki",)})
    assert (settings.instructions, settings.scope.sources) == (
        "Rhyme.",
        frozenset({"wiki"}),
    )
    known = assistants.list_known_to(bob.database, bob.user.owner)
    assert [one.id for one in known] == [DEFAULT_ID]


TAGGED = SetRule(RuleKind.TAG, "type=policy", None)


def _add_set(database: Database, name: str, *readers: str, rule: SetRule = TAGGED) -> None:
    values = SetValues(name=name, description="", readers=frozenset(readers), rules=(rule,))
    document_sets.add(database, values)


def test_document_sets_are_named_to_those_who_see_them_and_outlast_their_names(
    database: Database, bob: AssistantService, eve: AssistantService
) -> None:
    _add_set(database, "Policies", "public")
    _add_set(database, "Salaries", "group:hr")
    with pytest.raises(InvalidInputError, match="no document set named Salaries"):
        eve.create(replace(MINE, sets=("Salaries",)))
    with pytest.raises(InvalidInputError, match="no document set named #1"):
        eve.create(replace(MINE, sets=("#1",)))
    GroupService(database).add_member("hr", "ann@example.com")
    of_hr = _service_of(database, people.get_by_email(database, "ann@example.com"))
    shared = of_hr.create(replace(MINE, sets=("Policies", "Salaries"), visibility=Visibility.ALL))
    assert shared.values.sets == ("Policies", "Salaries")
    assert bob.get(shared.id).values.sets == ("Policies", "Salaries")
    assert eve.get(shared.id).values.sets == ("Policies",)
    assert eve.get(shared.id).is_limited
    scope = eve.find_settings(shared.id).scope
    found = document_sets.find(database, "Salaries")
    document_sets.change(database, found.id, replace(found.values, name="Wages"))
    renamed = _service_of(database, people.get_by_email(database, "bob@example.com"))
    assert renamed.get(shared.id).values.sets == ("Policies", "Wages")
    assert renamed.find_settings(shared.id).scope == scope
    of_hr.change(shared.id, {"description": "Of everybody"})
    assert eve.find_settings(shared.id).scope == scope


def test_one_that_is_limited_to_nothing_that_is_there_says_so(
    database: Database, ann: AssistantService, eve: AssistantService
) -> None:
    _add_set(database, "Policies", "public")
    _add_set(database, "Salaries", "group:hr")
    GroupService(database).add_member("hr", "ann@example.com")
    of_hr = _service_of(database, people.get_by_email(database, "ann@example.com"))
    made = of_hr.create(replace(FOR_ALL, sources=("wiki",), sets=("Policies", "Salaries")))
    salaries = of_hr.create(replace(FOR_ALL, sets=("Salaries",)))
    assert not made.finds_nothing
    assert not eve.get(DEFAULT_ID).finds_nothing
    # It may hold documents that they may read.
    assert not eve.get(salaries.id).finds_nothing
    document_sets.remove(database, document_sets.find(database, "Policies").id)
    assert not ann.get(made.id).finds_nothing
    document_sets.remove(database, document_sets.find(database, "Salaries").id)
    fresh = _service_of(database, people.get_by_email(database, "ann@example.com"))
    shown = fresh.get(made.id)
    assert (shown.finds_nothing, shown.is_limited, shown.values.sets) == (True, True, ())
    assert fresh.change(made.id, {"description": "As before"}).finds_nothing
    assert fresh.find_settings(made.id).scope.sets
    assert not fresh.change(made.id, {"searches": False}).finds_nothing
    # Once something else is chosen, what is gone no longer keeps its documents from being found.
    chosen = fresh.change(made.id, {"searches": True, "sources": ("handbook",)})
    assert (chosen.finds_nothing, chosen.hides_limits) == (False, False)
    assert fresh.find_settings(made.id).scope == Filters(sources=frozenset({"handbook"}))


def test_one_whose_sets_have_nothing_of_its_sources_finds_nothing(
    database: Database, ann: AssistantService
) -> None:
    for name in ("handbook", "wiki"):
        stored_sources.add(database, name, "folder", {})
    of_wiki = SetRule(RuleKind.FOLDER, "policies", "wiki")
    _add_set(database, "Policies", "public", rule=of_wiki)
    _add_set(database, "Salaries", "group:hr", rule=SetRule(RuleKind.SOURCE, "", "handbook"))

    def finds_nothing(*sources: str, sets: tuple[str, ...]) -> bool:
        labels = tuple(document_sets.find(database, name).label for name in sets)
        values = replace(FOR_ALL, sources=sources, sets=labels)
        return ann.get(
            assistants.add(database, ConversationOwner(None), values, START)
        ).finds_nothing

    assert finds_nothing("handbook", sets=("Policies",))
    assert not finds_nothing("wiki", sets=("Policies",))
    assert not finds_nothing(sets=("Policies",))
    # What is not shown to the asker may hold documents that they may read.
    assert not finds_nothing("handbook", sets=("Policies", "Salaries"))


def test_one_of_sources_that_somebody_may_not_read_finds_nothing_for_them(
    database: Database, ann: AssistantService
) -> None:
    made = ann.create(replace(FOR_ALL, sources=("wiki",)))
    assert not made.finds_nothing
    person = add_person(database, "fay@example.com")
    assert _service_of(database, person, frozenset({"handbook"})).get(made.id).finds_nothing
