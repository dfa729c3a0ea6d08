"""Objects of every kind that the routes name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.groups import GroupService
from backend.access.password_reset import PasswordResetService
from backend.access.people import PeopleService
from backend.access.random_secrets import digest
from backend.access.roles import Role
from backend.access.sessions import Visitor, begin_session
from backend.research.knowledge.service import add_items
from backend.schemas.new_document import NewDocument
from backend.sources.ingestion import IngestService, RequestMark
from backend.store import web_search
from backend.store.accounts import identities, oauth_clients, oauth_grants, sessions
from backend.store.accounts.oauth_clients import OAuthClient
from backend.store.accounts.oauth_grants import NewGrant
from backend.store.accounts.people import Person
from backend.store.audit import OWNER
from backend.store.chat import assistants, conversation_shares, memories, projects, shared_files
from backend.store.chat.assistants import AssistantValues, Visibility
from backend.store.chat.new_messages import (
    EVERYDAY,
    ConversationSetting,
    NewQuestion,
    Writer,
    begin_conversation,
)
from backend.store.chat.shared_files import FileHolder
from backend.store.documents import document_sets
from backend.store.documents.ledger import StoredLedger
from backend.store.files import user_files
from backend.store.files.file_source import FILES_SOURCE
from backend.store.files.user_files import NewFile
from backend.store.llm import language_models
from backend.store.owner import ConversationOwner
from backend.store.research.knowledge_records import OWN
from backend.store.sync import source_accounts, sources
from backend.store.sync.sources import EVERY_SOURCE
from backend.store.web_search import ProviderValues
from indexing.ingestion.ledger import Failed
from tests.support.access_actors import SERVICE, email_of
from tests.support.access_expected import ISSUER, MODEL_ADDRESS, Kind
from tests.support.accounts import add_person
from tests.support.conversations import ELSEWHERE, finish
from tests.support.document_sets import source as all_of
from tests.support.document_sets import values as make_set_values
from tests.support.groups import save_groups
from tests.support.knowledge import learn
from tests.support.language_models import make_values
from tests.support.research_runs import add_run, finish_run

if TYPE_CHECKING:
    from tests.support.access_world import World

_WEEK = timedelta(days=7)


def _name_nothing(world: "World", owner: str) -> str:
    """Return what is sent for a name that is nobody's, such as the email address of a sign-in."""
    del owner
    return world.name_new()


def _name_document(world: "World", owner: str) -> str:
    del world
    return f"wiki:{owner}.md"


def _make_source(world: "World", owner: str) -> str:
    name, person = world.name_new(), world.find_person(owner)
    is_of_admins = person is None or person.role == Role.ADMIN
    owner_id = None if person is None or is_of_admins else person.id
    settings = {"path": str(world.folder)}
    sources.add(world.database, name, "folder", settings, owner_id=owner_id)
    failed = Failed(source=name, document_id=f"{name}:x", item="x", reason="It is empty.")
    StoredLedger(world.database).save([failed])
    return name


def _make_ingest_source(world: "World", owner: str) -> str:
    name, person = world.name_new(), world.find_person(owner)
    is_of_admins = person is None or person.role == Role.ADMIN
    owner_id = None if person is None or is_of_admins else person.id
    sources.add(world.database, name, "ingest", {}, owner_id=owner_id)
    return name


def _make_pushed_document(world: "World", owner: str) -> str:
    source = _make_ingest_source(world, owner)
    service = IngestService(world.database, OWNER, EVERY_SOURCE)
    given = {"id": "x", "title": "X", "text": "It is pushed.", "readers": ["group:nobodys"]}
    service.push(source, [NewDocument.model_validate(given)], RequestMark(digest=source))
    return f"{source}:x"


def _make_person(world: "World", owner: str) -> str:
    del owner
    return str(add_person(world.database, email_of(world.name_new())).id)


def _make_group(world: "World", owner: str) -> str:
    del owner
    return str(GroupService(world.database).create(world.name_new()).id)


def _make_invitation(world: "World", owner: str) -> str:
    del owner
    email = email_of(world.name_new())
    PeopleService(world.database).invite(email, Role.MEMBER)
    return email


def _make_invitation_code(world: "World", owner: str) -> str:
    del owner
    return PeopleService(world.database).invite(email_of(world.name_new()), Role.MEMBER)


def _make_reset_code(world: "World", owner: str) -> str:
    email = email_of("tom" if owner == SERVICE else owner)
    return PasswordResetService(world.database).begin(email)


def _make_service_token(world: "World", owner: str) -> str:
    del owner
    return _make_own_token(world, SERVICE)


def _make_own_token(world: "World", owner: str) -> str:
    service, name = (
        ApiTokenService(world.database, owner=world.find_person(owner)),
        world.name_new(),
    )
    service.create(name, [TokenScope.SEARCH], _WEEK)
    return name


def _make_session(world: "World", owner: str) -> str:
    person = _find_owner(world, owner)
    found = sessions.find_with_person(
        world.database, digest(begin_session(world.database, person, Visitor()))
    )
    assert found
    return str(found[0].id)


def _make_identity(world: "World", owner: str) -> str:
    person, subject = _find_owner(world, owner), world.name_new()
    identities.add(world.database, ISSUER, subject, person.id, datetime.now(UTC))
    return subject


def _make_conversation(world: "World", owner: str) -> str:
    return split_pair(_make_message(world, owner))[0]


def _make_message(world: "World", owner: str) -> str:
    """Return the name of an answer that has been written."""
    return _begin_conversation(world, owner, EVERYDAY)


def _begin_conversation(world: "World", owner: str, setting: ConversationSetting) -> str:
    database, person, now = world.database, _find_owner(world, owner), datetime.now(UTC)
    asked, writer = NewQuestion(text="How long is leave?", filters={}), Writer(ELSEWHERE, now)
    begun = begin_conversation(
        database, ConversationOwner(person.id), "Leave", asked, writer, setting
    )
    finish(database, begun.answer.id)
    return f"{begun.answer.conversation_id}/{begun.answer.id}"


def _find_owner(world: "World", owner: str) -> Person:
    """Return whose an object is that only people have."""
    return world.get_person("tom" if owner == SERVICE else owner)


def _make_model(world: "World", owner: str) -> str:
    """A try of it fails at once, and is sent nowhere: its key cannot be decrypted."""
    del owner
    name = world.name_new()
    values = make_values(name, MODEL_ADDRESS)
    language_models.add(world.database, values, "not a sealed key")
    return name


def _make_web_provider(world: "World", owner: str) -> str:
    """A test of it fails at once, and sends nothing: its key cannot be decrypted."""
    del owner
    name = world.name_new()
    values = ProviderValues(
        name=name,
        kind="tavily",
        settings={},
        sealed_credential="not a sealed key",
        is_enabled=True,
        per_minute=None,
    )
    web_search.add(world.database, values)
    return name


def _make_set(world: "World", owner: str) -> str:
    return _add_set(world, _make_source(world, owner))


def _make_mixed_set(world: "World", owner: str) -> str:
    other = "eve" if owner == "tom" else "tom"
    return _add_set(world, _make_source(world, owner), _make_source(world, other))


def _add_set(world: "World", *names: str) -> str:
    name = world.name_new()
    document_sets.add(world.database, make_set_values(name, *map(all_of, names)))
    return name


def _make_assistant(world: "World", owner: str) -> str:
    return _add_assistant(world, owner, Visibility.MINE)


def _make_group_assistant(world: "World", owner: str) -> str:
    """Of an admin, for a group that the owner is in."""
    service, name = GroupService(world.database), world.name_new()
    service.create(name)
    service.add_member(name, _find_owner(world, owner).email)
    return _add_assistant(world, "gone", Visibility.GROUPS, name)


def _make_shared_assistant(world: "World", owner: str) -> str:
    del owner
    return _add_assistant(world, "gone", Visibility.ALL)


def _add_assistant(world: "World", owner: str, visibility: Visibility, *groups: str) -> str:
    values = AssistantValues(name="Desk", visibility=visibility, groups=groups)
    person = ConversationOwner(_find_owner(world, owner).id)
    return assistants.add(world.database, person, values, datetime.now(UTC))


def _make_project(world: "World", owner: str) -> str:
    person = ConversationOwner(_find_owner(world, owner).id)
    return projects.add(world.database, person, "Depot", "It opens in May.", datetime.now(UTC))


def _make_joined_project(world: "World", owner: str) -> str:
    project = _make_project(world, "gone")
    projects.add_member(world.database, project, _find_owner(world, owner).email)
    return project


def _make_project_member(world: "World", owner: str) -> str:
    project, email = _make_project(world, owner), world.get_person("gone").email
    projects.add_member(world.database, project, email)
    (member,) = projects.list_members(world.database, project)
    return f"{project}/{member.id}"


def _make_project_conversation(world: "World", owner: str) -> str:
    """Somebody else's, who is a member."""
    project, _, _ = _make_project_member(world, owner).partition("/")
    made = _begin_conversation(world, "gone", ConversationSetting(project_id=project))
    return f"{project}/{made.partition('/')[0]}"


def _make_project_message(world: "World", owner: str) -> str:
    project, _, _ = _make_project_member(world, owner).partition("/")
    made = _begin_conversation(world, "gone", ConversationSetting(project_id=project))
    return f"{project}/{split_pair(made)[1]}"


def _make_share(world: "World", owner: str) -> str:
    return _share(world, owner)[1]


def _make_ended_share(world: "World", owner: str) -> str:
    conversation, share = _share(world, owner)
    person = ConversationOwner(_find_owner(world, owner).id)
    conversation_shares.remove(world.database, person, conversation)
    return share


def _share(world: "World", owner: str) -> tuple[str, str]:
    """Return the conversation, and the name in the link to it."""
    person = ConversationOwner(_find_owner(world, owner).id)
    conversation, message = split_pair(_make_message(world, owner))
    now = datetime.now(UTC)
    shared = conversation_shares.share(world.database, person, conversation, int(message), now)
    return conversation, shared.id


def _make_file(world: "World", owner: str) -> str:
    person = ConversationOwner(_find_owner(world, owner).id)
    name = world.name_new()
    file = NewFile(
        id=name,
        name=f"{name}.md",
        media_type="text/markdown",
        size=10,
        sha256=name,
        document_id=f"{FILES_SOURCE}:{name}",
        data=b"0123456789",
    )
    user_files.add(world.database, person, file, most=1_000)
    user_files.finish(world.database, name, 10, None)
    return name


def _make_project_file(world: "World", owner: str) -> str:
    return _hold(world, FileHolder("project", _make_project(world, owner)), owner)


def _make_joined_project_file(world: "World", owner: str) -> str:
    """A file of another member, whose account is active: others are not in the project."""
    project, name = _make_joined_project(world, owner), world.name_new()
    projects.add_member(world.database, project, add_person(world.database, email_of(name)).email)
    return _hold(world, FileHolder("project", project), name)


def _make_assistant_file(world: "World", owner: str) -> str:
    return _hold(world, FileHolder("assistant", _make_assistant(world, owner)), owner)


def _hold(world: "World", holder: FileHolder, uploader: str) -> str:
    person = ConversationOwner(_find_owner(world, uploader).id)
    file = _make_file(world, uploader)
    shared_files.add(world.database, person, holder, file, most=1_000)
    return f"{holder.id}/{file}"


def _make_memory(world: "World", owner: str) -> str:
    person = ConversationOwner(_find_owner(world, owner).id)
    return memories.add(world.database, person, f"I sit in {world.name_new()}.").id


def _make_research(world: "World", owner: str) -> str:
    """Return the id of a run that rests on nothing that anybody may not read."""
    person = ConversationOwner(_find_owner(world, owner).id)
    run_id = add_run(world.database, person)
    finish_run(world.database, run_id, [])
    return run_id


def _make_client(world: "World", owner: str) -> str:
    del owner
    client = OAuthClient(
        id=world.name_new(),
        name="Editor",
        redirect_uris=["http://localhost/callback"],
        secret_digest=None,
        auth_method="none",
        grant_types=["authorization_code"],
        scopes=["search"],
        network="",
        created_at=datetime.now(UTC),
        connected_at=None,
    )
    oauth_clients.add(world.database, client)
    return client.id


def _make_connected_program(world: "World", owner: str) -> str:
    code, now = world.name_new(), datetime.now(UTC)
    grant = NewGrant(
        client_id=_make_client(world, owner),
        person_id=_find_owner(world, owner).id,
        resource="http://127.0.0.1:8321/mcp",
        scopes=["search"],
        redirect_uri="http://localhost/callback",
        code_digest=code,
        code_challenge="",
        created_at=now,
        ends_at=now + _WEEK,
    )
    oauth_grants.add(world.database, grant)
    added = oauth_grants.find_by_code(world.database, code)
    assert added is not None
    return str(added.id)


def _make_source_account(world: "World", owner: str) -> str:
    source, person = _make_source(world, owner), _find_owner(world, owner)
    save_groups(world.database, source, {"account/octocat": []})
    new = source_accounts.make_new(person.id, person.email, source, "octocat", datetime.now(UTC))
    source_id = source_accounts.find_source_id(world.database, source)
    source_accounts.add(world.database, replace(new, source_id=source_id))
    return new.id


def _make_knowledge(world: "World", owner: str) -> str:
    person = ConversationOwner(_find_owner(world, owner).id)
    learned = learn(f"It is {world.name_new()}.")
    (made,) = add_items(world.database, person, OWN, [learned])
    return made


MAKERS: Mapping[Kind, Callable[["World", str], str]] = MappingProxyType(
    {
        Kind.NOTHING: _name_nothing,
        Kind.DOCUMENT: _name_document,
        Kind.SOURCE: _make_source,
        Kind.INGEST_SOURCE: _make_ingest_source,
        Kind.PUSHED_DOCUMENT: _make_pushed_document,
        Kind.PERSON: _make_person,
        Kind.GROUP: _make_group,
        Kind.INVITATION: _make_invitation,
        Kind.INVITATION_CODE: _make_invitation_code,
        Kind.RESET_CODE: _make_reset_code,
        Kind.TOKEN: _make_service_token,
        Kind.OWN_TOKEN: _make_own_token,
        Kind.SESSION: _make_session,
        Kind.IDENTITY: _make_identity,
        Kind.CONVERSATION: _make_conversation,
        Kind.MESSAGE: _make_message,
        Kind.MODEL: _make_model,
        Kind.WEB_PROVIDER: _make_web_provider,
        Kind.DOCUMENT_SET: _make_set,
        Kind.MIXED_SET: _make_mixed_set,
        Kind.ASSISTANT: _make_assistant,
        Kind.GROUP_ASSISTANT: _make_group_assistant,
        Kind.SHARED_ASSISTANT: _make_shared_assistant,
        Kind.PROJECT: _make_project,
        Kind.JOINED_PROJECT: _make_joined_project,
        Kind.PROJECT_CONVERSATION: _make_project_conversation,
        Kind.PROJECT_MESSAGE: _make_project_message,
        Kind.PROJECT_MEMBER: _make_project_member,
        Kind.SHARE: _make_share,
        Kind.ENDED_SHARE: _make_ended_share,
        Kind.FILE: _make_file,
        Kind.PROJECT_FILE: _make_project_file,
        Kind.JOINED_PROJECT_FILE: _make_joined_project_file,
        Kind.ASSISTANT_FILE: _make_assistant_file,
        Kind.MEMORY: _make_memory,
        Kind.RESEARCH: _make_research,
        Kind.OAUTH_CLIENT: _make_client,
        Kind.CONNECTED_PROGRAM: _make_connected_program,
        Kind.KNOWLEDGE: _make_knowledge,
        Kind.SOURCE_ACCOUNT: _make_source_account,
    }
)
MISSING: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.DOCUMENT: "wiki:none.md",
        Kind.PERSON: "999999",
        Kind.GROUP: "999999",
        Kind.SESSION: "999999",
        Kind.CONNECTED_PROGRAM: "999999",
        Kind.INVITATION: "absent@example.com",
        Kind.MESSAGE: "absent/999999",
        Kind.PROJECT_CONVERSATION: "absent/absent",
        Kind.PROJECT_MESSAGE: "absent/999999",
        Kind.PROJECT_MEMBER: "absent/999999",
        Kind.PROJECT_FILE: "absent/absent",
        Kind.JOINED_PROJECT_FILE: "absent/absent",
        Kind.ASSISTANT_FILE: "absent/absent",
    }
)


@dataclass(frozen=True, slots=True)
class Pair:
    """An object in another; the one that does not vary is the asker's own."""

    outer: Kind
    inner: Kind
    varying: Literal["outer", "inner"] = "inner"


PAIRS: Mapping[Kind, Pair] = MappingProxyType(
    {
        Kind.MESSAGE_IN_OWN: Pair(Kind.MESSAGE, Kind.MESSAGE),
        Kind.ASSISTANT_IN_OWN: Pair(Kind.CONVERSATION, Kind.ASSISTANT),
        Kind.SOURCE_OF_OWN_SET: Pair(Kind.DOCUMENT_SET, Kind.SOURCE),
        Kind.SET_BY_OWN_SOURCE: Pair(Kind.DOCUMENT_SET, Kind.SOURCE, "outer"),
        Kind.PROJECT_CONVERSATION_IN_OWN: Pair(
            Kind.PROJECT_CONVERSATION, Kind.PROJECT_CONVERSATION
        ),
        Kind.FILE_FOR_OWN_PROJECT: Pair(Kind.PROJECT, Kind.FILE),
        Kind.FILE_FOR_OWN_ASSISTANT: Pair(Kind.ASSISTANT, Kind.FILE),
        Kind.PROJECT_MESSAGE_IN_OWN: Pair(Kind.PROJECT_MESSAGE, Kind.PROJECT_MESSAGE),
        Kind.PROJECT_OF_OWN_CONVERSATION: Pair(Kind.CONVERSATION, Kind.PROJECT),
        Kind.PROJECT_MEMBER_IN_OWN: Pair(Kind.PROJECT_MEMBER, Kind.PROJECT_MEMBER),
    }
)
"""Kinds of two objects that are made apart."""
IN_ANOTHER = frozenset(
    {
        *PAIRS,
        *(Kind.MESSAGE, Kind.PROJECT_CONVERSATION, Kind.PROJECT_MESSAGE, Kind.PROJECT_MEMBER),
        *(Kind.PROJECT_FILE, Kind.JOINED_PROJECT_FILE, Kind.ASSISTANT_FILE),
    }
)
"""Kinds whose names have two parts."""


def split_pair(named: str) -> tuple[str, str]:
    """Return what names the outer object, and the one in it."""
    outer, _, inner = named.partition("/")
    return outer, inner
