"""GitHub that refuses or loses something in the middle: nothing is lost, deleted or opened by it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from connectors.access import PUBLIC
from connectors.connector import Change, Checkpoint, ReaderGroup
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.sources.github.connector import GitHubConnector
from tests.contract.connector_worlds.held import (
    Held,
    documents,
    list_documents,
    list_groups,
    run,
    taking,
)
from tests.support.repository import Write
from tests.support.services.faulty_service import Once
from tests.support.services.github import GitHub, denied, not_found
from tests.support.services.github_place import (
    ServedGitHub,
    board,
    create_repository,
    handbook,
    serve_github,
)
from tests.support.services.github_state import LONG_AGO, Comment, Discussion, Issue
from tests.support.services.serving import Reply


def full() -> GitHub:
    """More of each than one answer holds."""
    private = board("ann", "bob")
    for number in range(1, 121):
        at = LONG_AGO + timedelta(minutes=number)
        private.put(Issue(number=number, title=f"I{number}", at=at))
        private.add_discussions(Discussion(number=number + 500, title=f"D{number}", at=at))
    said = (Comment(by="bob", body="Said."),)
    private.change(2, comments=said)
    private.change(3, is_pull=True, reviews=(replace(said[0], state="APPROVED"),))
    service = GitHub(private)
    service.profiles = {"ann": "ann@example.com", "bob": "bob@example.com"}
    return service


def connected(place: ServedGitHub) -> GitHubConnector:
    return place.connect("acme/board", contents=("issues", "pull requests", "discussions"))


FAILING = pytest.mark.parametrize("make", [not_found, lambda: denied("No")], ids=["404", "403"])


@FAILING
def test_a_listing_with_one_failed_response_is_complete_or_an_error_and_grants_nothing(
    make: Callable[[], Reply],
) -> None:
    service = full()
    with serve_github(service) as place:
        source = connected(place)
        right = set(list_documents(source))
        request = len(place.server.log)
        # The first answer is whether there is such a repository.
        for before in range(1, request):
            service.requests_before_fault, service.fault = before, Once(make())
            try:
                actual = set(list_documents(source))
            except (ActionRequiredError, TemporarilyUnavailableError):
                continue
            assert actual == right, before


@FAILING
def test_a_listing_of_groups_with_one_failed_response_is_complete_or_an_error_and_grants_nothing(
    make: Callable[[], Reply],
) -> None:
    service = full()
    with serve_github(service) as place:
        source = connected(place)
        right = {one.token: one.members for one in list_groups(source)}
        request = len(place.server.log)
        for before in range(1, request):
            service.requests_before_fault, service.fault = before, Once(make())
            try:
                actual = {one.token: one.members for one in list_groups(source)}
            except (ActionRequiredError, TemporarilyUnavailableError):
                continue
            assert actual.keys() <= right.keys(), before
            assert all(actual[one] <= right[one] for one in actual), before


@pytest.mark.soak("slow")
@FAILING
def test_a_run_with_one_failed_response_is_completed_by_the_next(
    make: Callable[[], Reply],
) -> None:
    service = full()
    with serve_github(service) as place:
        source, right = connected(place), Held()
        run(source, right)
        request = len(place.server.log)
        for before in range(request):
            service.requests_before_fault, service.fault = before, Once(make())
            held = Held()
            try:
                run(source, held)
            except (ActionRequiredError, TemporarilyUnavailableError):
                run(source, held)
            for one in source.refetch(list(held.unreadable)):
                held.take(one)
            assert held.versions == right.versions, before


def test_a_wiki_that_fails_during_a_run_is_read_completely_later(tmp_path: Path) -> None:
    pages = create_repository(tmp_path, "acme/handbook.wiki")
    pages.commit(*(Write(f"P{number:03}.md", b"%d" % number) for number in range(250)))
    there, away = tmp_path / "acme/handbook.wiki.git", tmp_path / "away"
    with serve_github(GitHub(handbook(has_wiki=True), folder=tmp_path)) as place:
        source, held = place.connect("acme/handbook", contents=("wiki",)), Held()
        changes = taking(source, held)
        assert any(isinstance(change, Checkpoint) for change in changes)
        assert len(held.documents) == 200
        there.rename(away)
        rest: list[Change] = list(changes)
        assert documents(rest) == []
        away.rename(there)
        run(source, held)
    assert len(held.documents) == 250


def test_a_repository_that_is_closed_during_a_listing_of_groups_is_no_longer_everybodys() -> None:
    first, second = handbook(), board("ann")
    second.visibility = "public"
    with serve_github(GitHub(first, second)) as place:
        groups = place.connect("acme/handbook", "acme/board").groups(None)
        first_group = next(groups)
        second.visibility = "private"
        rest = {one.name: one.members for one in groups if isinstance(one, ReaderGroup)}
    assert isinstance(first_group, ReaderGroup)
    assert first_group.members == {PUBLIC}
    assert rest["acme/board"] == {"external:1:account/ann"}


def test_another_repository_that_has_the_name_now_is_not_read_for_the_former() -> None:
    former = board("ann")
    service = GitHub(handbook(), former)
    with serve_github(service) as place:
        changes = place.connect("acme/handbook", "acme/board").changes(None, Held().known)
        assert documents([next(changes)])
        service.repositories[1] = replace(former, id=3, collaborators=["bob"])
        with pytest.raises(TemporarilyUnavailableError, match="another repository"):
            list(changes)
