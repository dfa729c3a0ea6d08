"""Confluence as a source, of both kinds, against servers of this process that answer as is documented."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from connectors.access import NOBODY, Access
from connectors.connector import Capability, Deletion
from connectors.document import Document, Person
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.sources.confluence.connector import ConfluenceConnector
from connectors.sources.confluence.settings import ConfluenceCredential, ConfluenceSettings
from tests.contract.connector_worlds.held import Held, documents, run
from tests.support.services.confluence import (
    EMAIL,
    LONG_AGO,
    TOKEN,
    File,
    Human,
    Only,
    Paper,
    Room,
    Said,
    Site,
)
from tests.support.services.confluence_cloud import CloudSite
from tests.support.services.confluence_server import DataCenterSite
from tests.support.services.serving import Reply, Running, reply_json, running

KINDS: tuple[type[Site], ...] = (CloudSite, DataCenterSite)
PEOPLE = {
    "ann": Human(name="Ann Lee", email="Ann@example.com"),
    "bob": Human(name="Bob Ek", email="bob@example.com"),
    "cy": Human(name="Cy Oh", email="cy@example.com"),
    "dee": Human(name="Dee"),
}

ACME = {
    "url": "https://acme.atlassian.net",
    "site": {"kind": "cloud", "email": "a@acme.example"},
}


@dataclass(frozen=True, slots=True)
class Place:
    service: Any
    """A `Site`; of a server, with its own switches."""
    door: Running

    def connect(self, **settings: Any) -> ConfluenceConnector:
        site = {"kind": "data center", **settings.pop("site", {})}
        if self.service.is_cloud:
            site = {"kind": "cloud", "email": EMAIL}
        url = f"{self.door.url}{self.service.begins()}"
        chosen = {"url": url, "site": site, "private_hosts": ("127.0.0.1",), **settings}
        credential = ConfluenceCredential(token=SecretStr(TOKEN))
        return ConfluenceConnector("wiki", ConfluenceSettings.model_validate(chosen), credential)


@contextmanager
def served(service: Site) -> Iterator[Place]:
    service.people = service.people or dict(PEOPLE)
    with running(service) as door:
        yield Place(service, door)


@pytest.fixture(params=KINDS, ids=["cloud", "server"])
def kind(request: pytest.FixtureRequest) -> Callable[..., Site]:
    made: Callable[..., Site] = request.param
    return made


def handbook(*papers: Paper, **values: Any) -> Room:
    room = Room(id=1, key="HB", people=["ann"], **values)
    room.put(*papers)
    return room


def lathe(**values: Any) -> Paper:
    return Paper(id=1, title="Lathe", **{"body": "<p>It stops.</p>", **values})


def people(*names: str) -> Access:
    return Access.to(f"user:{one}@example.com" for one in names)


def only(source: ConfluenceConnector) -> Document:
    (one,) = documents(run(source, Held()))
    return one


def readers(source: ConfluenceConnector) -> dict[str, Access]:
    """Of the listing; a run says the same."""
    listed = {one.document_id.removeprefix("wiki:"): one.access for one in source.listing()}
    told = documents(run(source, Held()))
    assert listed == {one.id.removeprefix("wiki:"): one.access for one in told}
    return listed


def test_a_page_is_a_document_with_its_comments(kind: Callable[..., Site]) -> None:
    answer = Said(id=22, by="ann", body="<p>Thanks.</p>", at=LONG_AGO + timedelta(days=2))
    said = (
        Said(id=21, body="<p>Oil it.</p>", at=LONG_AGO + timedelta(days=1), answers=(answer,)),
        Said(id=23, body="<p>Why?</p>", at=LONG_AGO + timedelta(days=3), quoted="stops"),
    )
    body = "<h1>Use</h1><p>Ask <ac:link><ri:user ri:account-id='557058:bob'/></ac:link>.</p>"
    top = Paper(id=7, title="Machines", body="<p>All.</p>")
    page = lathe(body=body, said=said, labels=("oil",), parent=7, number=3)
    with served(kind(handbook(top, page))) as place:
        held = Held()
        run(place.connect(), held)
        one = held.documents["wiki:1"]
        where = f"{place.door.url}{place.service.begins()}"
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
def test_a_mention_of_whoever_it_be_ends_nothing(kind: Callable[..., Site], named: str) -> None:
    body = f'<p>Ask <ac:link><ri:user ri:account-id="{named}"/></ac:link>.</p>'
    with served(kind(handbook(lathe(body=body)))) as place:
        one = only(place.connect())
    assert [each.text for each in one.sections] == ["Ask @somebody."]


def test_a_blog_post_is_read_and_an_empty_page_is_its_title(kind: Callable[..., Site]) -> None:
    post = Paper(id=2, title="News", body="<p>New.</p>", kind="blogpost")
    with served(kind(handbook(lathe(body=""), post))) as place:
        held = Held()
        run(place.connect(), held)
    assert [one.text for one in held.documents["wiki:1"].sections] == ["Lathe"]
    assert held.documents["wiki:2"].metadata["kind"] == "blog post"


def test_an_attachment_is_a_document_of_its_own_below_its_page(kind: Callable[..., Site]) -> None:
    files = (
        File(id=31, title="plan.md", data=b"# Plan\n\nBuy a lathe."),
        File(id=32, title="photo.png", data=b"\x89PNG..."),
        File(id=33, title="large.txt", data=b"x" * 2000),
        File(id=34, title="broken.pdf", data=b"%PDF-1.7 and no more"),
    )
    page = lathe(files=files, only=Only(people=("ann",)))
    with served(kind(handbook(page))) as place:
        held = Held()
        source = place.connect(largest_attachment=1000)
        run(source, held)
        again = list(source.refetch(["wiki:att31", "wiki:att99"]))
        listed = {one.document_id for one in source.listing()}
    plan = held.documents["wiki:att31"]
    assert [each.text for each in plan.sections] == ["Buy a lathe."]
    assert plan.parents == ("Space HB", "Lathe")
    assert plan.access == people("ann")
    assert plan.metadata["kind"] == "attachment"
    for number, told in {"32": "photo.png (Lathe)", "33": "large.txt (Lathe)"}.items():
        assert [each.text for each in held.documents[f"wiki:att{number}"].sections] == [told]
    (broken,) = held.unreadable.values()
    assert (broken.document_id, broken.item) == ("wiki:att34", "broken.pdf")
    assert again == [plan, Deletion("wiki:att99")]
    assert listed == {"wiki:1", *(f"wiki:att{number}" for number in range(31, 35))}


def test_readers_of_a_page_view_its_space_and_pass_all_restrictions_above_it(
    kind: Callable[..., Site],
) -> None:
    room = handbook(
        lathe(),
        Paper(id=2, title="Board", only=Only(people=("bob",), groups=("managers",))),
        Paper(id=3, title="Below", parent=2),
        Paper(id=4, title="Narrow", parent=3, only=Only(people=("cy", "dee"))),
        Paper(id=5, title="Disjoint", parent=4, only=Only(people=("bob",))),
        groups=["staff"],
    )
    service = kind(room)
    service.groups = {"staff": ["bob", "cy"], "managers": ["cy", "ann"]}
    with served(service) as place:
        assert readers(place.connect()) == {
            "1": people("ann", "bob", "cy"),
            "2": people("ann", "bob", "cy"),
            "3": people("ann", "bob", "cy"),
            "4": people("cy"),
            "5": NOBODY,
        }
        # who may not view the space passes no restriction
        room.groups = []
        assert readers(place.connect())["4"] == NOBODY


def test_an_open_space_is_everybodys_but_for_what_is_restricted(kind: Callable[..., Site]) -> None:
    room = handbook(lathe(), Paper(id=2, title="Board", only=Only(people=("cy",))), is_open=True)
    with served(kind(room)) as place:
        found = readers(place.connect())
        assert found == {"1": Access(people("ann").readers | {"public"}), "2": people("cy")}
        found = readers(place.connect(public_readers=("group:staff",)))
        assert found["1"] == Access(people("ann").readers | {"group:staff"})
        room.is_open = False
        assert readers(place.connect()) == {"1": people("ann"), "2": NOBODY}


def test_restrictions_that_are_told_in_part_are_asked_for_whole(kind: Callable[..., Site]) -> None:
    names = [f"p{number}" for number in range(450)]
    room = handbook(lathe(only=Only(people=tuple(names))))
    room.people = names[:300]
    service = kind(room)
    service.most_shown = 25
    service.people = {**PEOPLE, **{one: Human(name=one, email=f"{one}@x.test") for one in names}}
    with served(service) as place:
        (found,) = (one.access for one in place.connect().listing())
    assert found == Access.to(f"user:{one}@x.test" for one in names[:300])


def test_groups_of_many_are_expanded_whole(kind: Callable[..., Site]) -> None:
    names = [f"p{number}" for number in range(170)]
    service = kind(handbook(lathe(), groups=["staff"]))
    service.groups = {"staff": names}
    service.people = {**PEOPLE, **{one: Human(name=one, email=f"{one}@x.test") for one in names}}
    with served(service) as place:
        assert len(readers(place.connect())["1"].readers) == 171


def test_what_the_token_may_not_see_of_rights_is_nobody_and_told(
    kind: Callable[..., Site],
) -> None:
    room = handbook(lathe(), is_told=False)
    with served(kind(room)) as place:
        source = place.connect()
        assert readers(source) == {"1": NOBODY}
        faults = {one.capability: one.fault for one in source.check()}
    assert faults[Capability.CONTENT] is None
    assert "the readers of HB are not known" in str(faults[Capability.ACCESS])


def test_a_group_whose_members_are_hidden_is_nobody_and_told(kind: Callable[..., Site]) -> None:
    service = kind(handbook(lathe(), groups=["board"]))
    service.groups, service.untold_groups = {"board": ["bob"]}, {"board"}
    with served(service) as place:
        source = place.connect()
        assert readers(source) == {"1": people("ann")}
        assert [one.fault for one in source.check()][:2] == [None, None]
        assert "board are not known" in str(list(source.check())[-1].fault)


def test_an_address_that_the_owner_tells_goes_before_that_of_the_profile(
    kind: Callable[..., Site],
) -> None:
    room = handbook(lathe())
    room.people = ["ann", "dee"]
    with served(kind(room)) as place:
        own = "557058:" if place.service.is_cloud else ""
        told = (f"{own}DEE=Dee@acme.example", f"{own}ann=ann@acme.example")
        found = readers(place.connect(accounts=told))
    assert found["1"] == Access.to(["user:dee@acme.example", "user:ann@acme.example"])


def test_user_names_of_a_server_make_addresses_of_a_domain_where_the_owner_says_so() -> None:
    service = DataCenterSite(handbook(lathe()))
    service.shows_addresses = False
    with served(service) as place:
        assert readers(place.connect()) == {"1": NOBODY}
        assert "sees no e-mail address" in str(list(place.connect().check())[-1].fault)
        found = readers(place.connect(site={"mail_domain": "acme.example"}))
        assert found == {"1": Access.to(["user:ann@acme.example"])}


def test_permissions_of_an_older_server_come_by_its_remote_api() -> None:
    service = DataCenterSite(handbook(lathe(), groups=["staff"], is_open=False))
    service.groups, service.is_old = {"staff": ["bob"]}, True
    with served(service) as place:
        assert readers(place.connect()) == {"1": people("ann", "bob")}
        service.is_remote_on = False
        assert readers(place.connect()) == {"1": NOBODY}
        assert "remote API" in str(list(place.connect().check())[-1].fault)


def test_a_restricted_folder_above_a_page_of_the_cloud_counts() -> None:
    folder = Paper(id=8, title="Folder", kind="folder", only=Only(people=("bob",)))
    page = lathe(parent=9)
    between = Paper(id=9, title="Between", parent=8)
    room = handbook(folder, between, page)
    room.people = ["ann", "bob"]
    with served(CloudSite(room)) as place:
        found = readers(place.connect())
    assert found["9"] == people("bob")


def test_a_page_that_the_search_does_not_know_yet_has_its_rights_all_the_same() -> None:
    room = handbook(
        Paper(id=2, title="Top", only=Only(people=("ann",))),
        lathe(parent=2, files=(File(id=31, title="a.txt", data=b"x"),)),
    )
    room.people = ["ann", "bob"]
    service = CloudSite(room)
    service.unindexed = {1, 2}
    with served(service) as place:
        found = readers(place.connect())
    assert found == dict.fromkeys(("1", "2", "att31"), people("ann"))


def test_trashed_archived_and_hidden_pages_are_gone(kind: Callable[..., Site]) -> None:
    room = handbook(*(replace(lathe(), id=number) for number in (1, 2, 3, 4)))
    with served(kind(room)) as place:
        source = place.connect()
        held = Held()
        run(source, held)
        room.change(1, status="trashed")
        room.change(2, status="archived")
        room.change(3, hidden=True)
        held.prune(source.listing())
        again = list(source.refetch(["wiki:1", "wiki:2", "wiki:3"]))
    assert held.documents.keys() == {"wiki:4"}
    assert again == [Deletion("wiki:1"), Deletion("wiki:2"), Deletion("wiki:3")]


def test_a_page_that_moved_to_another_space_keeps_its_id_and_has_the_readers_of_its_place(
    kind: Callable[..., Site],
) -> None:
    room, closed = handbook(lathe()), Room(id=2, key="BRD", people=["bob"])
    with served(kind(room, closed)) as place:
        source = place.connect()
        assert readers(source) == {"1": people("ann")}
        closed.put(room.papers.pop(1))
        assert readers(source) == {"1": people("bob")}


Editing = Callable[[Room, Site], None]


def _comment(room: Room, site: Site) -> None:
    room.change(1, said=(Said(id=21, body="After.", at=site.now),))


def _edited_comment(room: Room, site: Site) -> None:
    (said,) = room.papers[2].said
    room.change(2, said=(replace(said, body="After.", number=2, at=site.now),))


def _attached(room: Room, site: Site) -> None:
    room.change(1, files=(File(id=31, title="a.txt", data=b"After.", at=site.now),))


@pytest.mark.parametrize("edit", [_comment, _edited_comment, _attached])
def test_what_hangs_on_a_page_is_found_although_the_page_tells_no_change(
    kind: Callable[..., Site], edit: Editing
) -> None:
    page = Paper(id=2, title="Other", said=(Said(id=20, body="Before."),))
    room = handbook(lathe(), page)
    with served(kind(room)) as place:
        source = place.connect()
        held = Held()
        run(source, held)
        edit(room, place.service)
        (found,) = documents(run(source, held))
        assert "After." in [each.text for each in found.sections]
        assert documents(run(source, held)) == []


def test_a_later_run_asks_only_for_what_changed_since(kind: Callable[..., Site]) -> None:
    room = handbook(lathe())
    with served(kind(room)) as place:
        source = place.connect()
        held = Held()
        run(source, held)
        place.door.log.clear()
        run(source, held)
        asked = [one for one in place.door.log if "content" in one.path or "pages" in one.path]
    (search,) = asked
    assert 'space in ("HB")' in search.param("cql")
    assert 'lastmodified >= now("-2' in search.param("cql")


def test_many_changes_of_one_minute_are_all_found(kind: Callable[..., Site]) -> None:
    room = handbook(*(Paper(id=number, title=f"P{number}") for number in range(1, 251)))
    with served(kind(room)) as place:
        source = place.connect()
        held = Held()
        run(source, held)
        for number in room.papers:
            room.change(number, number=2, at=place.service.now)
        assert len(documents(run(source, held))) == 250


def test_a_space_that_comes_later_is_read_whole_and_others_are_left_out(
    kind: Callable[..., Site],
) -> None:
    service = kind(handbook(lathe()), Room(id=3, key="~ann", people=["ann"], papers={}))
    service.rooms[1].put(Paper(id=30, title="Private"))
    with served(service) as place:
        source = place.connect(exclude=("~*",))
        held = Held()
        run(source, held)
        later = Room(id=2, key="NEW", people=["ann"])
        later.put(Paper(id=20, title="Old as it is"))
        service.rooms.append(later)
        assert [one.id for one in documents(run(source, held))] == ["wiki:20"]
    assert held.documents.keys() == {"wiki:1", "wiki:20"}


def test_a_space_that_is_not_there_is_told_once_the_others_are_read(
    kind: Callable[..., Site],
) -> None:
    with served(kind(handbook(lathe()))) as place:
        source = place.connect(spaces=("HB", "LOST", "X*"))
        held = Held()
        with pytest.raises(ActionRequiredError, match=r"^LOST: no such space"):
            run(source, held)
        assert held.documents.keys() == {"wiki:1"}
        assert all("LOST" in str(one.fault) for one in source.check())


def test_attachments_that_are_not_told_make_their_page_be_tried_again(
    kind: Callable[..., Site],
) -> None:
    page = lathe(files=(File(id=31, title="a.txt", data=b"x"),), files_answer=403)
    room = handbook(page)
    with served(kind(room)) as place:
        source = place.connect()
        held = Held()
        run(source, held)
        assert [one.item for one in held.unreadable.values()] == ["HB: Lathe"]
        room.change(1, files_answer=200)
        again = documents(source.refetch(list(held.unreadable)))
    assert [one.id for one in again] == ["wiki:1", "wiki:att31"]


def test_no_attachment_is_fetched_from_elsewhere(kind: Callable[..., Site]) -> None:
    room = handbook(lathe(files=(File(id=31, title="a.txt", data=b"x"),)))
    service = kind(room)

    def elsewhere(reply: Reply) -> Reply:
        assert isinstance(reply.body, bytes)
        moved = reply.body.replace(b'"/download/', b'"//elsewhere.example/')
        return replace(reply, body=moved)

    service.trouble = elsewhere
    with served(service) as place:
        held = Held()
        run(place.connect(), held)
    assert "no path on the site" in held.unreadable["wiki:att31"].reason


def test_a_token_that_stands_for_nobody_is_told(kind: Callable[..., Site]) -> None:
    with served(kind(handbook(lathe()))) as place:
        place.service.trouble = lambda _: reply_json({"type": "anonymous"})
        with pytest.raises(ActionRequiredError, match="rejects the token of wiki"):
            run(place.connect(), Held())


def test_a_rate_limit_is_waited_for_as_told(kind: Callable[..., Site]) -> None:
    with served(kind(handbook(lathe()))) as place:
        headers = {"Retry-After": "70"}
        place.service.trouble = lambda _: reply_json({}, status=429, headers=headers)
        with pytest.raises(TemporarilyUnavailableError) as caught:
            run(place.connect(), Held())
    assert caught.value.retry_after == timedelta(seconds=70)


def test_ids_that_are_none_of_its_own_are_gone(kind: Callable[..., Site]) -> None:
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
        ("largest_attachment", -1, "greater than or equal to 0"),
    ],
)
def test_settings_that_cannot_stand_are_refused(field: str, value: object, says: str) -> None:
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
    source = ConfluenceConnector("wiki", ConfluenceSettings.model_validate(ACME), credential)
    assert TOKEN not in repr(credential) + repr(vars(source))
