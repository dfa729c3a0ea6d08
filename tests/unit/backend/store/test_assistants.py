"""Assistants in the database: kept as they are set, and independent of the models, groups and people around them."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

from backend.access.groups import GroupService
from backend.access.roles import Role
from backend.store.chat import assistants, conversations
from backend.store.chat.assistants import DEFAULT_ID, AssistantValues, StoredAssistant, Visibility
from backend.store.database import Database, open_database
from backend.store.llm import language_models
from backend.store.owner import ConversationOwner
from tests.support.accounts import add_person
from tests.support.conversations import OWNER, START, begin
from tests.support.language_models import make_values

URL = "https://llm.example.com/v1"
VALUES = AssistantValues(
    name="Travel desk",
    description="Trips and expenses.",
    instructions="Answer in two sentences.\nName the form: 差旅.",
    starters=("How do I book a train?", "Who pays?"),
    sources=("handbook", "wiki"),
    sets=("travel",),
    temperature=0.25,
    searches=False,
    searches_web=False,
)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


def _find(database: Database, assistant_id: str) -> StoredAssistant:
    found = assistants.find(database, assistant_id)
    assert found is not None
    return found


def _known(database: Database, owner: ConversationOwner | None) -> list[str]:
    return [one.values.name for one in assistants.list_known_to(database, owner)]


def test_the_default_assistant_is_there_from_the_beginning(database: Database) -> None:
    (only,) = assistants.list_known_to(database, None)
    assert only == _find(database, DEFAULT_ID)
    assert only.is_default
    assert only.owner_name == ""
    values = only.values
    assert (values.instructions, values.sources, values.sets) == ("", (), ())
    assert (values.model, values.temperature, values.searches) == (None, None, True)
    assert values.visibility is Visibility.ALL


def test_values_are_kept_and_changed(database: Database) -> None:
    added = assistants.add(database, OWNER, VALUES, START)
    found = _find(database, added)
    assert found.values == VALUES
    assert (found.owner, found.created_at, found.updated_at) == (OWNER, START, START)
    later = START + timedelta(hours=1)
    changed = AssistantValues(name="Trips", temperature=None)
    assistants.change(database, added, changed, later)
    found = _find(database, added)
    assert found.values == changed
    assert (found.created_at, found.updated_at) == (START, later)
    assistants.remove(database, added)
    assert assistants.find(database, added) is None
    assert assistants.find(database, "\0") is None


def test_the_model_is_followed_when_it_is_renamed_and_keeps_its_name_when_it_is_removed(
    database: Database,
) -> None:
    language_models.add(database, make_values("large", URL), None)
    added = assistants.add(database, OWNER, AssistantValues(name="One", model="large"), START)
    assert _find(database, added).values.model == "large"
    model = language_models.find(database, "large")
    language_models.change(database, model.id, make_values("larger", URL), None)
    assert _find(database, added).values.model == "larger"
    usual = assistants.add(database, OWNER, AssistantValues(name="Two"), START)
    language_models.remove(database, model.id)
    found = _find(database, added).values
    assert (found.model, _find(database, usual).values.model) == ("larger", None)
    assistants.change(database, added, replace(found, name="Three"), START)
    assert _find(database, added).values.model == "larger"
    assistants.change(database, added, replace(found, model=None), START)
    assert _find(database, added).values.model is None


def test_a_model_that_is_added_again_is_followed_from_the_next_change_on(
    database: Database,
) -> None:
    language_models.add(database, make_values("large", URL), None)
    values = AssistantValues(name="One", model="large")
    added = assistants.add(database, OWNER, values, START)
    language_models.remove(database, language_models.find(database, "large").id)
    language_models.add(database, make_values("large", URL), None)
    assistants.change(database, added, values, START)
    again = language_models.find(database, "large")
    language_models.change(database, again.id, make_values("larger", URL), None)
    assert _find(database, added).values.model == "larger"


def test_the_groups_are_followed_when_they_are_renamed_or_deleted(database: Database) -> None:
    groups = GroupService(database)
    for name in ("hr", "it"):
        groups.create(name)
    assert assistants.list_unknown_groups(database, ["it", "gone", "hr"]) == ["gone"]
    values = AssistantValues(name="One", visibility=Visibility.GROUPS, groups=("hr", "it"))
    added = assistants.add(database, OWNER, values, START)
    assert _find(database, added).values.groups == ("hr", "it")
    groups.rename("hr", "people")
    groups.delete("it")
    assert _find(database, added).values.groups == ("people",)


def test_each_owner_knows_their_own_and_what_is_shared(database: Database) -> None:
    ann = ConversationOwner(add_person(database, "ann@example.com", Role.ADMIN).id)
    bob = ConversationOwner(add_person(database, "bob@example.com").id)
    assistants.add(database, ann, AssistantValues(name="of Ann"), START)
    shared = AssistantValues(name="all", visibility=Visibility.ALL)
    added = assistants.add(database, ann, shared, START)
    assistants.add(database, bob, AssistantValues(name="Of Bob"), START)
    assert _known(database, ann) == ["all", "Default assistant", "of Ann"]
    assert _known(database, bob) == ["all", "Default assistant", "Of Bob"]
    assert _known(database, None) == ["all", "Default assistant"]
    assert _find(database, added).owner_name == "Ann"


def test_a_conversation_outlives_its_assistant(database: Database) -> None:
    conversation = begin(database).question.conversation_id
    assert conversations.get(database, OWNER, conversation).assistant_id is None
    added = assistants.add(database, OWNER, VALUES, START)
    conversations.set_assistant(database, OWNER, conversation, added)
    assistants.remove(database, added)
    assert conversations.get(database, OWNER, conversation).assistant_id == added
