"""Confluence as a source, of both kinds, against servers of this process that answer as is documented."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from connectors.access import PUBLIC, Access, is_account_token
from connectors.connector import Capability, Deletion, ReaderGroup
from connectors.document import Document, Person
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.sources.confluence.connector import ConfluenceConnector
from connectors.sources.confluence.settings import ConfluenceCredential, ConfluenceSettings
from tests.contract.connector_worlds.held import (
    Held,
    documents,
    list_documents,
    list_groups,
    resolve,
    run,
)
from tests.support.rights import may_read
from tests.support.services.confluence import (
    EMAIL,
    LONG_AGO,
    TOKEN,
    Attachment,
    Comment,
    ConfluenceService,
    Page,
    Profile,
    Restriction,
    Space,
)
from tests.support.services.confluence_cloud import CloudService
from tests.support.services.confluence_server import DataCenterService
from tests.support.services.serving import Reply, RunningService, reply_json, serve

KINDS: tuple[type[ConfluenceService], ...] = (CloudService, DataCenterService)
PEOPLE = {
    "ann": Profile(name="Ann Lee", email="Ann@example.com"),
    "bob": Profile(name="Bob Ek", email="bob@example.com"),
    "cy": Profile(name="Cy Oh", email="cy@example.com"),
    "dee": Profile(name="Dee"),
}

ACME = {
    "url": "https://acme.atlassian.net",
    "site": {"kind": "cloud", "email": "a@acme.example"},
}


@dataclass(frozen=True, slots=True)
class Place:
    service: Any
    """A `Site`; of a server, with its own switches."""
    server: RunningService

    def connect(self, **settings: Any) -> ConfluenceConnector:
        site = {"kind": "data center", **settings.pop("site", {})}
        if self.service.is_cloud:
            site = {"kind": "cloud", "email": EMAIL}
        url = f"{self.server.url}{self.service.get_base_path()}"
        chosen = {"url": url, "site": site, "private_hosts": ("127.0.0.1",), **settings}
        credential = ConfluenceCredential(token=SecretStr(TOKEN))
        return ConfluenceConnector("wiki", 1, ConfluenceSettings.model_validate(chosen), credential)


@contextmanager
def served(service: ConfluenceService) -> Iterator[Place]:
    service.people = service.people or dict(PEOPLE)
    with serve(service) as server:
        yield Place(service, server)


@pytest.fixture(params=KINDS, ids=["cloud", "server"])
def kind(request: pytest.FixtureRequest) -> Callable[..., ConfluenceService]:
    made: Callable[..., ConfluenceService] = request.param
    return made


def handbook(*papers: Page, **values: Any) -> Space:
    space = Space(id=1, key="HB", people=["ann"], **values)
    space.put(*papers)
    return space


def lathe(**values: Any) -> Page:
    return Page(id=1, title="Lathe", **{"body": "<p>It stops.</p>", **values})


def people(*names: str) -> set[str]:
    return {f"user:{one}@example.com" for one in names}


def only(source: ConfluenceConnector) -> Document:
    (one,) = documents(run(source, Held()))
    return one


def readers(source: ConfluenceConnector) -> dict[str, set[str]]:
    """The people of the listing, "public" if everybody may read; a run says the same."""
    listed = {one.document_id.removeprefix("wiki:"): one.access for one in list_documents(source)}
    actual = documents(run(source, Held()))
    assert listed == {one.id.removeprefix("wiki:"): one.access for one in actual}
    groups = list_groups(source)
    own = frozenset[str]().union(*(one.members for one in groups))
    named = frozenset[str]().union(*(one for access in listed.values() for one in access.clauses))
    askers = {
        one: resolve(groups, one)
        for one in own | named
        if one.startswith(("user:", "group:", PUBLIC))
    }
    found = {
        name: {one for one, asker in askers.items() if may_read(asker, access)}
        for name, access in listed.items()
    }
    return {name: {PUBLIC} if PUBLIC in those else those for name, those in found.items()}


def test_a_page_is_a_document_with_its_comments(kind: Callable[..., ConfluenceService]) -> None:
    answer = Comment(id=22, by="ann", body="<p>Thanks.</p>", at=LONG_AGO + timedelta(days=2))
    said = (
        Comment(id=21, body="<p>Oil it.</p>", at=LONG_AGO + timedelta(days=1), replies=(answer,)),
        Comment(id=23, body="<p>Why?</p>", at=LONG_AGO + timedelta(days=3), quoted="stops"),
    )
    body = "<h1>Use</h1><p>Ask <ac:link><ri:user ri:account-id='557058:bob'/></ac:link>.</p>"
    top = Page(id=7, title="Machines", body="<p>All.</p>")
    page = lathe(body=body, comments=said, labels=("oil",), parent=7, number=3)
    with served(kind(handbook(top, page))) as place:
        held = Held()
        run(place.connect(), held)
        one = held.documents["wiki:1"]
        where = f"{place.server.url}{place.service.get_base_path()}"
    assert (one.title, one.source) == ("Lathe", "wiki")
    assert one.link.startswith(f"{where}/")
    assert one.parents == ("Space HB", "Machines")
    assert one.owners == (Person("Ann Lee", "ann@example.com"),)
    assert one.metadata == {"space": "HB", "kind": "page", "labels": ("oil",)}
    assert one.created_at == LONG_AGO
    assert one.updated_at == LONG_AGO + timedelta(days=3)
    mention = "@Bob Ek" if place.service.is_cloud else "@somebody"
    assert [(each.place.heading_path, each.text) for each in one.sections] == [
        (("Use",), f"Ask {mention}."),
        (("Bob Ek, 2026-01-06",), "Oil it."),
        (("Ann Lee, 2026-01-07",), "Thanks."),
        (("Bob Ek, 2026-01-08, on “stops”",), "Why?"),
    ]
    assert one.sections[1].link == f"{where}/comments/21"


@pytest.mark.parametrize("named", ["not an account", "557058:gone", "557058:failing"])
def test_a_mention_of_whoever_it_be_ends_nothing(
    kind: Callable[..., ConfluenceService], named: str
) -> None:
    body = f'<p>Ask <ac:link><ri:user ri:account-id="{named}"/></ac:link>.</p>'
    with served(kind(handbook(lathe(body=body)))) as place:
        one = only(place.connect())
    assert [each.text for each in one.sections] == ["Ask @somebody."]


def test_a_blog_post_is_read_and_an_empty_page_is_its_title(
    kind: Callable[..., ConfluenceService],
) -> None:
    post = Page(id=2, title="News", body="<p>New.</p>", kind="blogpost")
    with served(kind(handbook(lathe(body=""), post))) as place:
        held = Held()
        run(place.connect(), held)
    assert [one.text for one in held.documents["wiki:1"].sections] == ["Lathe"]
    assert held.documents["wiki:2"].metadata["kind"] == "blog post"


def test_an_attachment_is_a_document_of_its_own_below_its_page(
    kind: Callable[..., ConfluenceService],
) -> None:
    files = (
        Attachment(id=31, title="plan.md", data=b"# Plan\n\nBuy a lathe."),
        Attachment(id=32, title="photo.png", data=b"\x89PNG..."),
        Attachment(id=33, title="large.txt", data=b"x" * 2000),
        Attachment(id=34, title="broken.pdf", data=b"%PDF-1.7 and no more"),
    )
    page = lathe(files=files, restriction=Restriction(people=("ann",)))
    with served(kind(handbook(page))) as place:
        held = Held()
        source = place.connect(largest_attachment=1000)
        run(source, held)
        again = list(source.refetch(["wiki:att31", "wiki:att99"]))
        listed = {one.document_id for one in list_documents(source)}
    plan = held.documents["wiki:att31"]
    assert [each.text for each in plan.sections] == ["Buy a lathe."]
    assert plan.parents == ("Space HB", "Lathe")
    assert plan.access == Access.all_of([["external:1:space/1"], ["user:ann@example.com"]])
    assert plan.metadata["kind"] == "attachment"
    for number, actual in {"32": "photo.png (Lathe)", "33": "large.txt (Lathe)"}.items():
        assert [each.text for each in held.documents[f"wiki:att{number}"].sections] == [actual]
    (broken,) = held.unreadable.values()
    assert (broken.document_id, broken.item) == ("wiki:att34", "broken.pdf")
    assert again == [plan, Deletion("wiki:att99")]
    assert listed == {"wiki:1", *(f"wiki:att{number}" for number in range(31, 35))}


def test_readers_of_a_page_view_its_space_and_pass_all_restrictions_above_it(
    kind: Callable[..., ConfluenceService],
) -> None:
    space = handbook(
        lathe(),
        Page(id=2, title="Board", restriction=Restriction(people=("bob",), groups=("managers",))),
        Page(id=3, title="Below", parent=2),
        Page(id=4, title="Narrow", parent=3, restriction=Restriction(people=("cy", "dee"))),
        Page(id=5, title="Disjoint", parent=4, restriction=Restriction(people=("bob",))),
        groups=["staff"],
    )
    service = kind(space)
    service.groups = {"staff": ["bob", "cy"], "managers": ["cy", "ann"]}
    with served(service) as place:
        assert readers(place.connect()) == {
            "1": people("ann", "bob", "cy"),
            "2": people("ann", "bob", "cy"),
            "3": people("ann", "bob", "cy"),
            "4": people("cy"),
            "5": set(),
        }
        # who may not view the space passes no restriction
        space.groups = []
        assert readers(place.connect())["4"] == set()


def test_a_page_restricted_to_somebody_without_an_address_is_for_who_has_the_account(
    kind: Callable[..., ConfluenceService],
) -> None:
    space = handbook(lathe(restriction=Restriction(people=("dee",))))
    space.people = ["ann", "dee"]
    with served(kind(space)) as place:
        source = place.connect()
        assert readers(source) == {"1": set()}
        (listed,) = list_documents(source)
        groups = list_groups(source)
        (account,) = (one for one in groups if is_account_token(one.token) and not one.members)
        assert account.name == "Dee"
        mapping = ReaderGroup(account.token, frozenset(people("dee")))
        mapped = [*groups, mapping]
        may = {one for one in people("ann", "dee") if may_read(resolve(mapped, one), listed.access)}
        assert may == people("dee")
        space.people = ["ann"]  # the restriction alone opens nothing
        mapped = [*list_groups(source), mapping]
        assert not may_read(resolve(mapped, *people("dee")), listed.access)


def test_a_public_space_is_readable_by_everybody_except_restricted_pages(
    kind: Callable[..., ConfluenceService],
) -> None:
    space = handbook(
        lathe(), Page(id=2, title="Board", restriction=Restriction(people=("cy",))), is_public=True
    )
    with served(kind(space)) as place:
        found = readers(place.connect())
        assert found == {"1": {PUBLIC}, "2": people("cy")}
        found = readers(place.connect(public_readers=("group:staff",)))
        assert found["1"] == people("ann") | {"group:staff"}
        space.is_public = False
        assert readers(place.connect()) == {"1": people("ann"), "2": set()}


def test_incomplete_restrictions_are_requested_completely(
    kind: Callable[..., ConfluenceService],
) -> None:
    names = [f"p{number}" for number in range(150)]
    space = handbook(lathe(restriction=Restriction(people=tuple(names))))
    space.people = names[:100]
    service = kind(space)
    service.max_restrictions = 25
    service.people = {**PEOPLE, **{one: Profile(name=one, email=f"{one}@x.test") for one in names}}
    with served(service) as place:
        (found,) = readers(place.connect()).values()
    assert found == {f"user:{one}@x.test" for one in names[:100]}


def test_large_groups_are_expanded_completely(kind: Callable[..., ConfluenceService]) -> None:
    names = [f"p{number}" for number in range(170)]
    service = kind(handbook(lathe(), groups=["staff"]))
    service.groups = {"staff": names}
    service.people = {**PEOPLE, **{one: Profile(name=one, email=f"{one}@x.test") for one in names}}
    with served(service) as place:
        assert len(readers(place.connect())["1"]) == 171


def test_permissions_that_the_token_may_not_read_are_nobody_and_are_reported(
    kind: Callable[..., ConfluenceService],
) -> None:
    space = handbook(lathe(), permissions_visible=False)
    with served(kind(space)) as place:
        source = place.connect()
        assert readers(source) == {"1": set()}
        faults = {one.capability: one.fault for one in source.check()}
    assert faults[Capability.CONTENT] is None
    assert "the readers of HB are not known" in str(faults[Capability.ACCESS])


def test_a_group_with_hidden_members_is_nobody_and_is_reported(
    kind: Callable[..., ConfluenceService],
) -> None:
    service = kind(handbook(lathe(), groups=["board"]))
    service.groups, service.hidden_groups = {"board": ["bob"]}, {"board"}
    with served(service) as place:
        source = place.connect()
        assert readers(source) == {"1": people("ann")}
        assert [one.fault for one in source.check()][:2] == [None, None]
        assert "board are not known" in str(list(source.check())[-1].fault)


def test_a_configured_address_takes_precedence_over_the_profile(
    kind: Callable[..., ConfluenceService],
) -> None:
    space = handbook(lathe())
    space.people = ["ann", "dee"]
    with served(kind(space)) as place:
        own = "557058:" if place.service.is_cloud else ""
        actual = (f"{own}DEE=Dee@acme.example", f"{own}ann=ann@acme.example")
        found = readers(place.connect(accounts=actual))
    assert found["1"] == {"user:dee@acme.example", "user:ann@acme.example"}


def test_user_names_of_a_server_become_addresses_of_a_configured_domain() -> None:
    service = DataCenterService(handbook(lathe()))
    service.shows_emails = False
    with served(service) as place:
        assert readers(place.connect()) == {"1": set()}
        assert "sees no e-mail address" in str(list(place.connect().check())[-1].fault)
        found = readers(place.connect(site={"mail_domain": "acme.example"}))
        assert found == {"1": {"user:ann@acme.example"}}


def test_permissions_of_an_older_server_come_by_its_remote_api() -> None:
    service = DataCenterService(handbook(lathe(), groups=["staff"], is_public=False))
    service.groups, service.is_before_9_1 = {"staff": ["bob"]}, True
    with served(service) as place:
        assert readers(place.connect()) == {"1": people("ann", "bob")}
        service.is_rpc_enabled = False
        assert readers(place.connect()) == {"1": set()}
        assert "remote API" in str(list(place.connect().check())[-1].fault)


def test_a_restricted_folder_above_a_page_of_the_cloud_counts() -> None:
    folder = Page(id=8, title="Folder", kind="folder", restriction=Restriction(people=("bob",)))
    page = lathe(parent=9)
    between = Page(id=9, title="Between", parent=8)
    space = handbook(folder, between, page)
    space.people = ["ann", "bob"]
    with served(CloudService(space)) as place:
        found = readers(place.connect())
    assert found["9"] == people("bob")


def test_a_page_that_the_search_does_not_know_yet_has_its_rights_all_the_same() -> None:
    space = handbook(
        Page(id=2, title="Top", restriction=Restriction(people=("ann",))),
        lathe(parent=2, files=(Attachment(id=31, title="a.txt", data=b"x"),)),
    )
    space.people = ["ann", "bob"]
    service = CloudService(space)
    service.unindexed = {1, 2}
    with served(service) as place:
        found = readers(place.connect())
    assert found == dict.fromkeys(("1", "2", "att31"), people("ann"))


def test_trashed_archived_and_hidden_pages_are_gone(kind: Callable[..., ConfluenceService]) -> None:
    space = handbook(*(replace(lathe(), id=number) for number in (1, 2, 3, 4)))
    with served(kind(space)) as place:
        source = place.connect()
        held = Held()
        run(source, held)
        space.change(1, status="trashed")
        space.change(2, status="archived")
        space.change(3, hidden=True)
        held.prune(list_documents(source))
        again = list(source.refetch(["wiki:1", "wiki:2", "wiki:3"]))
    assert held.documents.keys() == {"wiki:4"}
    assert again == [Deletion("wiki:1"), Deletion("wiki:2"), Deletion("wiki:3")]


def test_a_page_that_moved_to_another_space_keeps_its_id_and_has_the_readers_of_its_place(
    kind: Callable[..., ConfluenceService],
) -> None:
    space, closed = handbook(lathe()), Space(id=2, key="BRD", people=["bob"])
    with served(kind(space, closed)) as place:
        source = place.connect()
        assert readers(source) == {"1": people("ann")}
        closed.put(space.pages.pop(1))
        assert readers(source) == {"1": people("bob")}


Editing = Callable[[Space, ConfluenceService], None]


def _comment(space: Space, site: ConfluenceService) -> None:
    space.change(1, comments=(Comment(id=21, body="After.", at=site.now),))


def _edited_comment(space: Space, site: ConfluenceService) -> None:
    (said,) = space.pages[2].comments
    space.change(2, comments=(replace(said, body="After.", number=2, at=site.now),))


def _attached(space: Space, site: ConfluenceService) -> None:
    space.change(1, files=(Attachment(id=31, title="a.txt", data=b"After.", at=site.now),))


@pytest.mark.parametrize("edit", [_comment, _edited_comment, _attached])
def test_what_hangs_on_a_page_is_found_although_the_page_shows_no_change(
    kind: Callable[..., ConfluenceService], edit: Editing
) -> None:
    page = Page(id=2, title="Other", comments=(Comment(id=20, body="Before."),))
    space = handbook(lathe(), page)
    with served(kind(space)) as place:
        source = place.connect()
        held = Held()
        run(source, held)
        edit(space, place.service)
        (found,) = documents(run(source, held))
        assert "After." in [each.text for each in found.sections]
        assert documents(run(source, held)) == []


def test_a_later_run_asks_only_for_what_changed_since(
    kind: Callable[..., ConfluenceService],
) -> None:
    space = handbook(lathe())
    with served(kind(space)) as place:
        source = place.connect()
        held = Held()
        run(source, held)
        place.server.log.clear()
        run(source, held)
        request = [one for one in place.server.log if "content" in one.path or "pages" in one.path]
    (search,) = request
    assert 'space in ("HB")' in search.param("cql")
    assert 'lastmodified >= now("-2' in search.param("cql")


@pytest.mark.soak("slow")
def test_many_changes_of_one_minute_are_all_found(kind: Callable[..., ConfluenceService]) -> None:
    space = handbook(*(Page(id=number, title=f"P{number}") for number in range(1, 251)))
    with served(kind(space)) as place:
        source = place.connect()
        held = Held()
        run(source, held)
        for number in space.pages:
            space.change(number, number=2, at=place.service.now)
        assert len(documents(run(source, held))) == 250


def test_a_new_space_is_read_completely_and_others_are_not_read_again(
    kind: Callable[..., ConfluenceService],
) -> None:
    service = kind(handbook(lathe()), Space(id=3, key="~ann", people=["ann"], pages={}))
    service.spaces[1].put(Page(id=30, title="Private"))
    with served(service) as place:
        source = place.connect(exclude=("~*",))
        held = Held()
        run(source, held)
        later = Space(id=2, key="NEW", people=["ann"])
        later.put(Page(id=20, title="Old as it is"))
        service.spaces.append(later)
        assert [one.id for one in documents(run(source, held))] == ["wiki:20"]
    assert held.documents.keys() == {"wiki:1", "wiki:20"}


def test_a_missing_space_is_reported_after_the_others_are_read(
    kind: Callable[..., ConfluenceService],
) -> None:
    with served(kind(handbook(lathe()))) as place:
        source = place.connect(spaces=("HB", "LOST", "X*"))
        held = Held()
        with pytest.raises(ActionRequiredError, match=r"^LOST: no such space"):
            run(source, held)
        assert held.documents.keys() == {"wiki:1"}
        assert all("LOST" in str(one.fault) for one in source.check())


def test_attachments_that_cannot_be_listed_make_their_page_unreadable(
    kind: Callable[..., ConfluenceService],
) -> None:
    page = lathe(files=(Attachment(id=31, title="a.txt", data=b"x"),), files_status=403)
    space = handbook(page)
    with served(kind(space)) as place:
        source = place.connect()
        held = Held()
        run(source, held)
        assert [one.item for one in held.unreadable.values()] == ["HB: Lathe"]
        space.change(1, files_status=200)
        again = documents(source.refetch(list(held.unreadable)))
    assert [one.id for one in again] == ["wiki:1", "wiki:att31"]


def test_no_attachment_is_fetched_from_elsewhere(kind: Callable[..., ConfluenceService]) -> None:
    space = handbook(lathe(files=(Attachment(id=31, title="a.txt", data=b"x"),)))
    service = kind(space)

    def elsewhere(reply: Reply) -> Reply:
        assert isinstance(reply.body, bytes)
        moved = reply.body.replace(b'"/download/', b'"//elsewhere.example/')
        return replace(reply, body=moved)

    service.fault = elsewhere
    with served(service) as place:
        held = Held()
        run(place.connect(), held)
    assert "no path on the site" in held.unreadable["wiki:att31"].reason


def test_a_token_that_is_treated_as_anonymous_is_an_error(
    kind: Callable[..., ConfluenceService],
) -> None:
    with served(kind(handbook(lathe()))) as place:
        place.service.fault = lambda _: reply_json({"type": "anonymous"})
        with pytest.raises(ActionRequiredError, match="rejects the token of wiki"):
            run(place.connect(), Held())


def test_the_wait_of_a_rate_limit_is_exact(kind: Callable[..., ConfluenceService]) -> None:
    with served(kind(handbook(lathe()))) as place:
        headers = {"Retry-After": "70"}
        place.service.fault = lambda _: reply_json({}, status=429, headers=headers)
        with pytest.raises(TemporarilyUnavailableError) as caught:
            run(place.connect(), Held())
    assert caught.value.retry_after == timedelta(seconds=70)


def test_ids_that_are_none_of_its_own_are_gone(kind: Callable[..., ConfluenceService]) -> None:
    ids = ["wiki:9", "wiki:x", "wiki:", "other:1", "wiki:att", "wiki:1/../2", "wiki:" + "9" * 30]
    with served(kind(handbook(lathe()))) as place:
        assert list(place.connect().refetch(ids)) == [Deletion(one) for one in ids]


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("site", {"kind": "cloud"}, "email"),
        ("site", {"kind": "cloud", "email": "ann"}, "not a reader"),
        ("site", {"kind": "data center", "mail_domain": "@acme"}, "not a domain"),
        ("url", "file:///etc", "not a web address"),
        ("url", "http://a.example", "not encrypted"),
        ("accounts", ("ann",), "ACCOUNT=E-MAIL"),
        ("accounts", ("ann=ann",), "not a reader"),
        ("public_readers", ("all",), "not a reader"),
        ("public_readers", ("external:2:team",), "is of a source"),
        ("largest_attachment", -1, "greater than or equal to 0"),
    ],
)
def test_invalid_settings_are_rejected(field: str, value: object, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        ConfluenceSettings.model_validate({**ACME, field: value})


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("https://acme.atlassian.net", "https://acme.atlassian.net/wiki"),
        ("https://acme.atlassian.net/wiki/", "https://acme.atlassian.net/wiki"),
    ],
)
def test_a_site_of_the_cloud_may_be_named_with_or_without_its_path(url: str, base: str) -> None:
    assert ConfluenceSettings.model_validate({**ACME, "url": url}).api_url == base


def test_a_token_is_not_shown() -> None:
    credential = ConfluenceCredential(token=SecretStr(TOKEN))
    source = ConfluenceConnector("wiki", 1, ConfluenceSettings.model_validate(ACME), credential)
    assert TOKEN not in repr(credential) + repr(vars(source))
