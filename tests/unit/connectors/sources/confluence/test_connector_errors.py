"""Confluence that refuses, loses or repeats itself in the middle: nothing is lost, deleted or opened by it."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from connectors.connector import Deletion, Unreadable
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from tests.contract.connector_worlds.held import Held, documents, run
from tests.support.services.confluence import (
    LONG_AGO,
    File,
    Only,
    Paper,
    Room,
    Said,
    Site,
    not_found,
    refused,
)
from tests.support.services.confluence_cloud import CloudSite
from tests.support.services.confluence_server import DataCenterSite
from tests.support.services.serving import Asked, Reply
from tests.support.services.troubled import Once
from tests.unit.connectors.sources.confluence.test_connector import (
    handbook,
    kind,
    lathe,
    people,
    served,
)

__all__ = ["kind"]


def full() -> Room:
    """Of all that there is, with more pages than one answer holds."""
    room = handbook(
        Paper(id=1, title="Top", only=Only(people=("ann",))),
        Paper(id=2, title="Below", parent=1, said=(Said(id=20, body="Said."),)),
        Paper(id=3, title="News", kind="blogpost"),
        Paper(id=4, title="Filed", files=(File(id=31, title="a.txt", data=b"x"),)),
        *(Paper(id=number, title=f"P{number}") for number in range(100, 220)),
    )
    room.people, room.groups = ["ann", "bob"], ["staff"]
    return room


@pytest.mark.parametrize("instead", [not_found(), refused()], ids=["404", "403"])
def test_a_listing_in_which_one_answer_fails_is_none_or_whole_and_opens_nothing(
    kind: Callable[..., Site], instead: Reply
) -> None:
    service = kind(full())
    service.groups = {"staff": ["cy"]}
    with served(service) as place:
        source = place.connect()
        right = {one.document_id: one.access.readers for one in source.listing()}
        asked = len(place.door.log)
        assert asked > 7
        for before in range(asked):
            service.left, service.trouble = before, Once(instead)
            try:
                told = {one.document_id: one.access.readers for one in source.listing()}
            except (ActionRequiredError, TemporarilyUnavailableError):
                continue
            assert told.keys() == right.keys(), before
            assert all(told[one] <= right[one] for one in right), before


@pytest.mark.parametrize("instead", [not_found(), refused()], ids=["404", "403"])
def test_a_run_in_which_one_answer_fails_is_made_whole_by_the_next(
    kind: Callable[..., Site], instead: Reply
) -> None:
    service = kind(full())
    service.groups = {"staff": ["cy"]}
    with served(service) as place:
        source, right = place.connect(), Held()
        run(source, right)
        asked = len(place.door.log)
        for before in range(asked):
            service.left, service.trouble = before, Once(instead)
            held = Held()
            try:
                run(source, held)
            except (ActionRequiredError, TemporarilyUnavailableError):
                run(source, held)
            for one in source.refetch(list(held.unreadable)):
                held.take(one)
            assert held.versions == right.versions, before
            assert all(
                one.access.readers <= right.documents[name].access.readers
                for name, one in held.documents.items()
            ), before


@pytest.mark.parametrize("own", ["1", "att31"])
def test_what_is_refused_when_it_is_asked_for_anew_is_not_taken_for_deleted(
    kind: Callable[..., Site], own: str
) -> None:
    service = kind(handbook(lathe(files=(File(id=31, title="a.txt", data=b"x"),))))
    with served(service) as place:
        service.left, service.trouble = 2, lambda _: refused()
        (told,) = place.connect().refetch([f"wiki:{own}"])
    assert isinstance(told, Unreadable)
    assert told.document_id == f"wiki:{own}"
    assert "may not read" in told.reason


def test_what_changed_and_is_refused_meanwhile_is_tried_again(kind: Callable[..., Site]) -> None:
    room = handbook(lathe())
    service = kind(room)
    with served(service) as place:
        source, held = place.connect(), Held()
        run(source, held)
        room.change(1, number=2, at=service.now)
        service.left, service.trouble = 3, Once(refused())
        run(source, held)
        assert held.unreadable.keys() == {"wiki:1"}
        (found,) = documents(source.refetch(["wiki:1"]))
    assert found.version != held.versions["wiki:1"]


class SlowToNote(CloudSite):
    """Its search stands by the time at which it took note of a change, and shows the latest."""

    noted: dict[int, datetime]

    def _touched(
        self, asked: Asked, room: Room
    ) -> Iterator[tuple[datetime, int, Callable[[], Any]]]:
        for at, number, make in super()._touched(asked, room):
            yield self.noted.get(number, at), number, make


def test_what_is_edited_while_the_search_still_knows_the_edit_before_hides_nothing_behind_it() -> (
    None
):
    room = handbook(*(Paper(id=number, title=f"P{number}") for number in range(1, 151)))
    service = SlowToNote(room)
    service.noted = {}
    with served(service) as place:
        source, held = place.connect(), Held()
        run(source, held)
        began = service.now
        service.ahead = timedelta(hours=10)
        for number in room.papers:
            room.change(number, number=2, at=began + number * timedelta(minutes=3))
        # The last of the first page of results.
        service.noted[50] = room.papers[50].at
        room.change(50, number=3, at=service.now)
        assert len(documents(run(source, held))) == 150


class Circling(CloudSite):
    """What is answered to a comment is what was said on page 1."""

    def _answers(self, asked: Asked, number: str) -> Reply:
        del number
        return self._said(asked, "1", "footer")


def test_answers_that_go_in_a_circle_are_read_once() -> None:
    service = Circling(handbook(lathe(said=(Said(id=21, body="Again."),))))
    with served(service) as place:
        held = Held()
        run(place.connect(), held)
    texts = [one.text for one in held.documents["wiki:1"].sections]
    assert texts == ["It stops.", "Again."]


class LikeKeys(DataCenterSite):
    """One person's user name is the user key of another."""

    def person(self, short: str) -> dict[str, Any]:
        key = "f00d" if short == "8a7f-bob" else f"8a7f-{short}"
        return {**super().person(short), "userKey": key}


def test_a_user_name_that_is_spelt_as_the_key_of_another_makes_nobody_that_other() -> None:
    room = handbook(
        lathe(only=Only(people=("8a7f-bob",))),
        Paper(id=2, title="Salaries", only=Only(people=("bob",))),
    )
    room.people = ["8a7f-bob", "bob"]
    service = LikeKeys(room)
    service.is_old = True  # tells who views a space by user names alone
    with served(service) as place:
        sly = {"8a7f-bob": place.service.people["cy"]}
        service.people = {**service.people, **sly}
        access = {one.document_id: one.access for one in place.connect().listing()}
    assert access == {"wiki:1": people("cy"), "wiki:2": people("bob")}


def test_where_there_is_no_confluence_the_owner_is_told(kind: Callable[..., Site]) -> None:
    service = kind(handbook(lathe()))
    service.trouble = lambda _: not_found()
    with (
        served(service) as place,
        pytest.raises(ActionRequiredError, match="there is no Confluence at"),
    ):
        list(place.connect().listing())


def test_a_page_that_was_trashed_is_deleted_when_asked_for(kind: Callable[..., Site]) -> None:
    room = handbook(lathe(at=LONG_AGO))
    with served(kind(room)) as place:
        room.change(1, status="trashed")
        assert list(place.connect().refetch(["wiki:1"])) == [Deletion("wiki:1")]
