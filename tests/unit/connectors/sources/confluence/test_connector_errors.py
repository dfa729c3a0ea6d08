"""Confluence that refuses, loses or repeats itself in the middle: nothing is lost, deleted or opened by it."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from connectors.access import Access, is_account_token
from connectors.connector import Deletion, Unreadable
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.sources.confluence.connector import ConfluenceConnector
from tests.contract.connector_worlds.held import (
    Held,
    documents,
    list_documents,
    list_groups,
    resolve,
    run,
)
from tests.support.services.confluence import (
    LONG_AGO,
    Attachment,
    Comment,
    ConfluenceService,
    Page,
    Restriction,
    Space,
    denied,
    not_found,
)
from tests.support.services.confluence_cloud import CloudService
from tests.support.services.confluence_server import DataCenterService
from tests.support.services.faulty_service import Once
from tests.support.services.serving import ReceivedRequest, Reply
from tests.unit.connectors.sources.confluence.test_connector import (
    handbook,
    kind,
    lathe,
    people,
    served,
)

__all__ = ["kind"]


def full() -> Space:
    """Of all that there is, with more pages than one answer holds."""
    space = handbook(
        Page(id=1, title="Top", restriction=Restriction(people=("ann",))),
        Page(id=2, title="Below", parent=1, comments=(Comment(id=20, body="Said."),)),
        Page(id=3, title="News", kind="blogpost"),
        Page(id=4, title="Filed", files=(Attachment(id=31, title="a.txt", data=b"x"),)),
        *(Page(id=number, title=f"P{number}") for number in range(100, 220)),
    )
    space.people, space.groups = ["ann", "bob"], ["staff"]
    return space


@pytest.mark.soak("slow")
@pytest.mark.parametrize("instead", [not_found(), denied()], ids=["404", "403"])
def test_a_listing_with_one_failed_response_is_complete_or_an_error_and_grants_nothing(
    kind: Callable[..., ConfluenceService], instead: Reply
) -> None:
    service = kind(full())
    service.groups = {"staff": ["cy"]}
    with served(service) as place:
        source = place.connect()
        right = {one.document_id: one.access for one in list_documents(source)}
        request = len(place.server.log)
        accounts = _list_accounts(source)
        assert request > 6
        for before in range(request):
            service.requests_before_fault, service.fault = before, Once(instead)
            try:
                actual = {one.document_id: one.access for one in list_documents(source)}
            except (ActionRequiredError, TemporarilyUnavailableError):
                continue
            assert actual.keys() == right.keys(), before
            assert all(_is_narrower(actual[one], right[one], accounts) for one in right), before


def _is_narrower(actual: Access, right: Access, accounts: Mapping[str, frozenset[str]]) -> bool:
    """Whether every clause is met by whoever meets the actual ones, which may name people by their accounts."""
    clauses = [
        frozenset[str]().union(*(accounts.get(token, {token}) for token in clause))
        for clause in actual.clauses
    ]
    return not clauses or all(any(each <= clause for each in clauses) for clause in right.clauses)


def _list_accounts(source: ConfluenceConnector) -> dict[str, frozenset[str]]:
    """Return the people of each account."""
    return {one.token: one.members for one in list_groups(source) if is_account_token(one.token)}


@pytest.mark.parametrize("instead", [not_found(), denied()], ids=["404", "403"])
def test_a_listing_of_groups_with_one_failed_response_grants_nothing(
    kind: Callable[..., ConfluenceService], instead: Reply
) -> None:
    service = kind(full())
    service.groups = {"staff": ["cy"]}
    with served(service) as place:
        source = place.connect()
        right = _find_scopes(source)
        request = len(place.server.log)
        for before in range(request):
            service.requests_before_fault, service.fault = before, Once(instead)
            try:
                actual = _find_scopes(source)
            except (ActionRequiredError, TemporarilyUnavailableError):
                continue
            assert all(actual[one] <= right[one] for one in right), before


def _find_scopes(source: ConfluenceConnector) -> dict[str, set[str]]:
    """The spaces and groups to which people belong."""
    groups = list_groups(source)
    return {
        one: {token for token in resolve(groups, one).tokens if re.search(":(space|group)/", token)}
        for one in sorted(people("ann", "bob", "cy"))
    }


@pytest.mark.soak("slow")
@pytest.mark.parametrize("instead", [not_found(), denied()], ids=["404", "403"])
def test_a_run_with_one_failed_response_is_completed_by_the_next(
    kind: Callable[..., ConfluenceService], instead: Reply
) -> None:
    service = kind(full())
    service.groups = {"staff": ["cy"]}
    with served(service) as place:
        source, right = place.connect(), Held()
        run(source, right)
        request = len(place.server.log)
        accounts = _list_accounts(source)
        for before in range(request):
            service.requests_before_fault, service.fault = before, Once(instead)
            held = Held()
            try:
                run(source, held)
            except (ActionRequiredError, TemporarilyUnavailableError):
                run(source, held)
            for one in source.refetch(list(held.unreadable)):
                held.take(one)
            assert held.versions == right.versions, before
            assert all(
                _is_narrower(one.access, right.documents[name].access, accounts)
                for name, one in held.documents.items()
            ), before


@pytest.mark.parametrize("own", ["1", "att31"])
def test_denied_access_when_refetching_is_not_a_deletion(
    kind: Callable[..., ConfluenceService], own: str
) -> None:
    service = kind(handbook(lathe(files=(Attachment(id=31, title="a.txt", data=b"x"),))))
    with served(service) as place:
        service.requests_before_fault, service.fault = 2, lambda _: denied()
        (actual,) = place.connect().refetch([f"wiki:{own}"])
    assert isinstance(actual, Unreadable)
    assert actual.document_id == f"wiki:{own}"
    assert "may not read" in actual.reason


def test_what_changed_and_is_refused_meanwhile_is_tried_again(
    kind: Callable[..., ConfluenceService],
) -> None:
    space = handbook(lathe())
    service = kind(space)
    with served(service) as place:
        source, held = place.connect(), Held()
        run(source, held)
        space.change(1, number=2, at=service.now)
        service.requests_before_fault, service.fault = 3, Once(denied())
        run(source, held)
        assert held.unreadable.keys() == {"wiki:1"}
        (found,) = documents(source.refetch(["wiki:1"]))
    assert found.version != held.versions["wiki:1"]


class SlowToNote(CloudService):
    """Its search orders by the time at which it indexed a change, and shows the latest version."""

    noted: dict[int, datetime]

    def _iterate_changes(
        self, request: ReceivedRequest, space: Space
    ) -> Iterator[tuple[datetime, int, Callable[[], Any]]]:
        for at, number, make in super()._iterate_changes(request, space):
            yield self.noted.get(number, at), number, make


def test_an_outdated_search_index_hides_no_change() -> None:
    space = handbook(*(Page(id=number, title=f"P{number}") for number in range(1, 151)))
    service = SlowToNote(space)
    service.noted = {}
    with served(service) as place:
        source, held = place.connect(), Held()
        run(source, held)
        began = service.now
        service.clock_offset = timedelta(hours=10)
        for number in space.pages:
            space.change(number, number=2, at=began + number * timedelta(minutes=3))
        # The last of the first page of results.
        service.noted[50] = space.pages[50].at
        space.change(50, number=3, at=service.now)
        assert len(documents(run(source, held))) == 150


class Circling(CloudService):
    """The replies to a comment are the comments on page 1."""

    def _list_replies(self, request: ReceivedRequest, number: str) -> Reply:
        del number
        return self._list_comments(request, "1", "footer")


def test_replies_that_form_a_loop_are_read_once() -> None:
    service = Circling(handbook(lathe(comments=(Comment(id=21, body="Again."),))))
    with served(service) as place:
        held = Held()
        run(place.connect(), held)
    texts = [one.text for one in held.documents["wiki:1"].sections]
    assert texts == ["It stops.", "Again."]


class LikeKeys(DataCenterService):
    """One person's user name is the user key of another."""

    def person(self, short: str) -> dict[str, Any]:
        key = "f00d" if short == "8a7f-bob" else f"8a7f-{short}"
        return {**super().person(short), "userKey": key}


def test_a_user_name_equal_to_the_key_of_another_user_is_not_confused_with_it() -> None:
    space = handbook(
        lathe(restriction=Restriction(people=("8a7f-bob",))),
        Page(id=2, title="Salaries", restriction=Restriction(people=("bob",))),
    )
    space.people = ["8a7f-bob", "bob"]
    service = LikeKeys(space)
    service.is_before_9_1 = True  # tells who views a space by user names alone
    with served(service) as place:
        sly = {"8a7f-bob": place.service.people["cy"]}
        service.people = {**service.people, **sly}
        access = {one.document_id: one.access for one in list_documents(place.connect())}
    space_token = ["external:1:space/1"]
    assert access == {
        "wiki:1": Access.all_of([space_token, people("cy")]),
        "wiki:2": Access.all_of([space_token, people("bob")]),
    }


def test_an_address_without_confluence_is_an_error(
    kind: Callable[..., ConfluenceService],
) -> None:
    service = kind(handbook(lathe()))
    service.fault = lambda _: not_found()
    with (
        served(service) as place,
        pytest.raises(ActionRequiredError, match="there is no Confluence at"),
    ):
        list(list_documents(place.connect()))


def test_a_page_in_the_trash_is_a_deletion_when_refetched(
    kind: Callable[..., ConfluenceService],
) -> None:
    space = handbook(lathe(at=LONG_AGO))
    with served(kind(space)) as place:
        space.change(1, status="trashed")
        assert list(place.connect().refetch(["wiki:1"])) == [Deletion("wiki:1")]
