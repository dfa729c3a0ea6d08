"""Discussions of GitHub, against a server that answers by the schema of its GraphQL API."""

from dataclasses import replace
from datetime import timedelta

import pytest

from connectors.access import Access
from connectors.connector import Checkpoint, Deletion, Unreadable
from connectors.document import Person
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.sources.github.client import get_graphql_url
from connectors.sources.github.connector import GitHubConnector
from tests.contract.connector_worlds.held import Held, documents, run, taking
from tests.support.services.github import GitHub
from tests.support.services.github_place import (
    ServedGitHub,
    board,
    only,
    read,
    readers,
    serve_github,
)
from tests.support.services.github_state import LONG_AGO, Comment, Discussion, Repo
from tests.support.services.serving import reply_json


def talk(place: ServedGitHub, *repositories: str) -> GitHubConnector:
    return place.connect(*(repositories or ("acme/handbook",)), contents=("discussions",))


def handbook(*discussions: Discussion) -> Repo:
    repo = Repo(id=1, name="acme/handbook")
    repo.add_discussions(*discussions)
    return repo


def many(count: int) -> list[Discussion]:
    return [
        Discussion(number=number, title=f"D{number}", at=LONG_AGO + timedelta(minutes=number))
        for number in range(1, count + 1)
    ]


def after(hours: int) -> timedelta:
    return timedelta(hours=hours)


def test_a_discussion_is_a_document_with_its_comments_and_their_replies() -> None:
    answer = Comment(
        by="bob",
        body="Oil it.\n\n## How\n\nFrom above.",
        at=LONG_AGO + after(24),
        replies=(Comment(by="ann", body="Thanks.", at=LONG_AGO + after(48)),),
    )
    one = Discussion(
        number=9,
        title="Why does the lathe stop?",
        body="Since May.",
        category="Q&A",
        answer=1,
        is_closed=True,
        labels=("urgent",),
        comments=(Comment(by="cy", body="No idea."), answer),
    )
    with serve_github(GitHub(handbook(one))) as place:
        settings = {"contents": ("discussions",), "accounts": ("ann=ann@example.com",)}
        found = only(place.connect("acme/handbook", **settings))
        assert list(talk(place).refetch([found.id])) == [replace(found, owners=(Person("ann"),))]
    assert (found.id, found.title) == ("hub:1/discussions/9", "Why does the lathe stop?")
    assert found.link == "https://github.test/acme/handbook/discussions/9"
    assert found.parents == ("acme", "handbook", "discussions")
    assert found.owners == (Person("ann", "ann@example.com"),)
    assert found.access == Access.to(["external:1:repository/1"])
    assert found.metadata == {
        "repository": "acme/handbook",
        "kind": "discussion",
        "number": "9",
        "state": "closed",
        "category": "Q&A",
        "answered": "yes",
        "labels": ("urgent",),
    }
    assert [(each.place.heading_path, each.text) for each in found.sections] == [
        ((), "Since May."),
        (("cy, 2026-01-05",), "No idea."),
        (("bob, 2026-01-06, answer",), "Oil it."),
        (("bob, 2026-01-06, answer", "How"), "From above."),
        (("bob, 2026-01-06, answer", "ann, 2026-01-07"), "Thanks."),
    ]
    assert len({each.link for each in found.sections}) == 4


def test_an_unanswered_question_differs_from_a_discussion_that_needs_no_answer() -> None:
    request = Discussion(number=1, title="Why?", category="Q&A", by=None)
    actual = Discussion(number=2, title="News", category="Announcements")
    with serve_github(GitHub(handbook(request, actual))) as place:
        first, second = read(talk(place))
    assert first.metadata["answered"] == "no"
    assert "answered" not in second.metadata
    assert first.owners == ()
    assert [each.text for each in first.sections] == ["Why?"]


def test_all_comments_and_replies_are_read_although_both_come_in_pages() -> None:
    comments = [Comment(by="bob", body=f"Comment {number}.") for number in range(120)]
    replies = tuple(Comment(by="ann", body=f"Reply {number}.") for number in range(130))
    comments[70] = replace(comments[70], replies=replies)
    with serve_github(
        GitHub(handbook(Discussion(number=1, title="Long", comments=tuple(comments))))
    ) as place:
        found = only(talk(place))
    actual = [f"Comment {number}." for number in range(120)]
    actual[71:71] = [f"Reply {number}." for number in range(130)]
    assert [each.text for each in found.sections] == actual


def test_a_later_run_goes_back_to_where_the_last_one_began() -> None:
    service = GitHub(handbook(*many(230)))
    with serve_github(service) as place:
        source, held = talk(place), Held()
        assert len(documents(run(source, held))) == 230
        place.server.log.clear()
        service.repositories[0].update_discussion(3, body="More.", at=service.now)
        assert [one.id for one in documents(run(source, held))] == ["hub:1/discussions/3"]
        assert sum(one.path == "/graphql" for one in place.server.log) == 1


def test_an_answer_that_is_marked_within_the_second_of_the_last_change_is_seen() -> None:
    service = GitHub(handbook())
    repo = service.repositories[0]
    said = (Comment(by="bob", body="Oil it."),)
    repo.add_discussions(
        Discussion(number=1, title="Why?", category="Q&A", comments=said, at=service.now)
    )
    with serve_github(service) as place:
        source, held = talk(place), Held()
        run(source, held)
        repo.update_discussion(1, answer=0)
        (one,) = documents(run(source, held))
    assert one.metadata["answered"] == "yes"


def test_an_interrupted_run_resumes_at_its_page() -> None:
    service = GitHub(handbook(*many(120)))
    with serve_github(service) as place:
        source, held = talk(place), Held()
        for change in taking(source, held):
            if isinstance(change, Checkpoint):
                break
        assert len(held.documents) == 50
        # One before the page that comes next is gone: cursors stand still.
        del service.repositories[0].discussions[10]
        rest = [one.id for one in documents(run(source, held))]
    assert rest == [f"hub:1/discussions/{number}" for number in range(51, 121)]


def test_an_invalid_cursor_starts_from_the_first_page() -> None:
    with serve_github(GitHub(handbook(*many(120)))) as place:
        source, held = talk(place), Held()
        first = next(change for change in taking(source, held) if isinstance(change, Checkpoint))
        spoilt = Checkpoint(first.value.replace('"1/discussions", "', '"1/discussions", "?'))
        assert spoilt != first
        held.since = spoilt
        run(source, held)
    assert len(held.documents) == 120


def test_disabled_discussions_are_not_requested() -> None:
    repo = handbook(Discussion(number=1, title="x"))
    repo.has_discussions = False
    with serve_github(GitHub(repo)) as place:
        assert read(talk(place)) == []
        assert readers(talk(place)) == {}
        assert "/graphql" not in [one.path for one in place.server.log]


def test_a_deleted_discussion_is_not_listed_and_is_a_deletion_when_refetched() -> None:
    repo = handbook(*many(2))
    with serve_github(GitHub(repo)) as place:
        source = talk(place)
        assert len(readers(source)) == 2
        del repo.discussions[1]
        assert readers(source).keys() == {"hub:1/discussions/2"}
        assert list(source.refetch(["hub:1/discussions/1"])) == [Deletion("hub:1/discussions/1")]


def test_one_whose_comments_cannot_be_had_is_unreadable_by_itself() -> None:
    bad = Discussion(number=1, title="Bad", comments=(Comment(by="bob", body="x"),), status=451)
    with serve_github(GitHub(handbook(bad, Discussion(number=2, title="Good")))) as place:
        held = Held()
        changes = run(talk(place), held)
    (actual,) = [one for one in changes if isinstance(one, Unreadable)]
    assert (actual.document_id, actual.item) == ("hub:1/discussions/1", "acme/handbook#1 Bad")
    assert actual.link == "https://github.test/acme/handbook/discussions/1"
    assert held.documents.keys() == {"hub:1/discussions/2"}


def test_a_token_without_permission_for_discussions_reads_the_rest_and_reports_it() -> None:
    private = board("ann")
    private.add_discussions(Discussion(number=5, title="x"))
    private.discussions_visible = False
    with serve_github(GitHub(private)) as place:
        source, held = place.connect("acme/board"), Held()
        says = (
            "may not read repository.discussions .* grant it the permission, or create a new token"
        )
        with pytest.raises(ActionRequiredError, match=says):
            run(source, held)
        assert held.documents.keys() == {"hub:2/1"}
        with pytest.raises(ActionRequiredError, match=says):
            readers(source)
        assert all("discussions" in str(one.fault) for one in source.check())
        # What was read is not read again; what was not is read whole once it may be.
        private.discussions_visible = True
        assert [one.id for one in documents(run(source, held))] == ["hub:2/discussions/5"]


def test_the_wait_of_the_point_limit_is_exact() -> None:
    service = GitHub(handbook(*many(3)))
    service.points = 0
    with serve_github(service) as place, pytest.raises(TemporarilyUnavailableError) as caught:
        read(talk(place))
    assert abs(caught.value.retry_after - timedelta(minutes=50)) < timedelta(seconds=30)


def test_no_request_is_sent_after_the_last_point_is_used() -> None:
    service = GitHub(handbook(*many(120)))
    service.points = 1
    with serve_github(service) as place:
        with pytest.raises(TemporarilyUnavailableError, match="no points left") as caught:
            read(talk(place))
        assert sum(one.path == "/graphql" for one in place.server.log) == 1
    assert abs(caught.value.retry_after - timedelta(minutes=50)) < timedelta(seconds=30)


@pytest.mark.parametrize(
    ("error", "headers", "wait"),
    [
        ({"type": "RATE_LIMIT", "message": "API rate limit exceeded"}, {}, 60),
        ({"message": "You have exceeded a secondary rate limit."}, {"Retry-After": "70"}, 70),
    ],
)
def test_a_rate_limit_in_the_body_is_waited_for(
    error: dict[str, str], headers: dict[str, str], wait: int
) -> None:
    service = GitHub(handbook(*many(3)))

    with serve_github(service) as place:
        service.requests_before_fault = 2
        service.fault = lambda _: reply_json({"errors": [error]}, headers=headers)
        with pytest.raises(TemporarilyUnavailableError) as caught:
            read(talk(place))
    assert caught.value.retry_after == timedelta(seconds=wait)


@pytest.mark.parametrize(
    "body",
    [
        {"data": None},
        {"data": {"repository": {"discussions": {"nodes": []}}}},
        {"data": {"repository": {"discussions": None}}},
        {"errors": [{"message": "Something went wrong while executing your query."}]},
    ],
)
def test_an_unusable_response_does_not_count_as_no_discussions(body: object) -> None:
    service = GitHub(handbook(*many(3)))
    with serve_github(service) as place:
        service.requests_before_fault, service.fault = 2, lambda _: reply_json(body)
        with pytest.raises(TemporarilyUnavailableError, match="discussions of acme/handbook"):
            list(talk(place).listing(None))


def test_a_server_of_ones_own_has_another_address() -> None:
    assert get_graphql_url("https://api.github.com") == "https://api.github.com/graphql"
    assert get_graphql_url("https://git.example/api/v3") == "https://git.example/api/graphql"
