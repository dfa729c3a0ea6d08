"""GitHub as a source, against a server of this process that answers as GitHub's API is documented."""

from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import SecretStr, ValidationError

from connectors.access import PUBLIC, Access
from connectors.connector import Capability, Checkpoint, Deletion, Unreadable
from connectors.document import Document, Person
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.sources.github.settings import GitHubCredential, GitHubSettings
from tests.contract.connector_worlds.held import Held, documents, list_documents, run
from tests.support.services.github import TOKEN, GitHub, denied, secondary_limit
from tests.support.services.github_place import (
    board,
    connector,
    handbook,
    of_accounts,
    only,
    read,
    readers,
    serve_github,
)
from tests.support.services.github_state import LONG_AGO, Comment, Issue, Repo

HANDBOOK = Access.to(["external:1:repository/1"])


def test_an_issue_is_a_document_with_its_comments() -> None:
    repo = handbook()
    later = LONG_AGO + timedelta(days=1)
    said = (Comment(by="bob", body="Oil it.\n\n## How\n\nFrom above.", at=later),)
    repo.change(1, labels=("urgent",), comments=said)
    with serve_github(GitHub(repo)) as place:
        one = only(place.connect("acme/handbook", accounts=("Ann=ann@example.com",)))
    assert (one.id, one.title) == ("hub:1/1", "Lathe")
    assert one.link == "https://github.test/acme/handbook/issues/1"
    assert one.parents == ("acme", "handbook")
    assert one.owners == (Person("ann", "ann@example.com"),)
    assert one.access == HANDBOOK
    assert one.metadata == {
        "repository": "acme/handbook",
        "kind": "issue",
        "number": "1",
        "state": "open",
        "labels": ("urgent",),
    }
    assert [(each.place.heading_path, each.text) for each in one.sections] == [
        ((), "It stops."),
        (("bob, 2026-01-06",), "Oil it."),
        (("bob, 2026-01-06", "How"), "From above."),
    ]
    assert one.sections[1].link != one.link


def test_a_pull_request_holds_its_reviews_and_the_comments_on_its_lines_in_order_of_time() -> None:
    def at(hour: int) -> timedelta:
        return timedelta(hours=hour)

    repo = handbook()
    repo.change(
        1,
        is_pull=True,
        comments=(Comment(by="cy", body="Third.", at=LONG_AGO + at(3)),),
        reviews=(
            Comment(by="bob", body="", at=LONG_AGO + at(4), state="APPROVED"),
            Comment(by="bob", body="First.", at=LONG_AGO + at(1), state="CHANGES_REQUESTED"),
            Comment(by="dee", body="Not sent yet.", state="PENDING"),
        ),
        line_comments=(Comment(by="bob", body="Second.", at=LONG_AGO + at(2), path="src/a.py"),),
    )
    with serve_github(GitHub(repo)) as place:
        one = only(place.connect("acme/handbook"))
    assert one.metadata["kind"] == "pull request"
    assert [(each.place.heading_path[-1:], each.text) for each in one.sections] == [
        ((), "It stops."),
        (("bob, 2026-01-05, changes requested",), "First."),
        (("bob, 2026-01-05, src/a.py",), "Second."),
        (("cy, 2026-01-05",), "Third."),
        (("bob, 2026-01-05, approved",), "approved"),
    ]


def test_an_item_without_a_text_or_an_author_is_its_title() -> None:
    repo = handbook()
    repo.change(1, body=None, by=None)
    with serve_github(GitHub(repo)) as place:
        one = only(place.connect("acme/handbook"))
    assert [each.text for each in one.sections] == ["Lathe"]
    assert one.owners == ()


def test_a_body_that_begins_with_a_rule_is_read_completely() -> None:
    repo = handbook()
    repo.change(1, body="---\ntitle: Not this\n---\nBelow.")
    with serve_github(GitHub(repo)) as place:
        one = only(place.connect("acme/handbook"))
    assert one.title == "Lathe"
    # A line above dashes is a heading in Markdown.
    assert [(each.place.heading_path, each.text) for each in one.sections[-1:]] == [
        (("title: Not this",), "Below.")
    ]


def test_a_removed_collaborator_is_gone_from_the_next_listing() -> None:
    private = board("ann", "bob")
    service = GitHub(handbook(), private)
    service.profiles = {"ann": "ann@example.com", "bob": "bob@example.com"}
    with serve_github(service) as place:
        source = place.connect("acme/handbook", "acme/board")
        before = readers(source)
        private.collaborators.remove("bob")
        after = readers(source)
    assert before["hub:1/1"] == after["hub:1/1"] == {PUBLIC}
    assert before["hub:2/1"] == of_accounts("ann", "bob")
    assert after["hub:2/1"] == of_accounts("ann")


def test_a_repository_that_was_closed_to_the_public_is_no_longer_everybodys() -> None:
    repo = handbook(collaborators=["ann"])
    with serve_github(GitHub(repo)) as place:
        source = place.connect("acme/handbook")
        before = readers(source)
        repo.visibility = "private"
        after = readers(source)
    assert before == {"hub:1/1": {PUBLIC}}
    assert after == {"hub:1/1": {"external:1:account/ann"}}


def test_a_configured_address_takes_precedence_over_the_profile() -> None:
    service = GitHub(board("Ann", "bob"))
    service.profiles = {"ann": "ann@home.example", "bob": "not an address"}
    with serve_github(service) as place:
        found = readers(place.connect("acme/board", accounts=("ANN=Ann@acme.example",)))
    accounts = {"external:1:account/ann", "external:1:account/bob"}
    assert found == {"hub:2/1": {*accounts, "user:ann@acme.example"}}


def test_an_internal_repository_is_of_all_members() -> None:
    repo = board("guest")
    repo.visibility = "internal"
    with serve_github(GitHub(repo, members={"acme": ["ann", "bob"]})) as place:
        found = readers(place.connect("acme/board"))
    accounts = {f"external:1:account/{one}" for one in ("ann", "bob", "guest")}
    assert found == {"hub:2/1": accounts}


def test_readers_that_the_token_may_not_list_are_nobody_and_are_reported() -> None:
    repo = board("ann")
    repo.collaborators_visible = False
    with serve_github(GitHub(handbook(), repo)) as place:
        source = place.connect("acme/handbook", "acme/board")
        assert readers(source) == {"hub:1/1": {PUBLIC}, "hub:2/1": set()}
        faults = {one.capability: one.fault for one in source.check()}
    assert faults[Capability.CONTENT] is None
    assert faults[Capability.LISTING] is None
    assert "acme/board are not known" in str(faults[Capability.ACCESS])
    assert "Must have push access" in str(faults[Capability.ACCESS])


def test_the_readers_of_public_repositories_are_configurable() -> None:
    with serve_github(GitHub(handbook())) as place:
        found = readers(place.connect("acme/handbook", public_readers=("group:staff",)))
    assert found == {"hub:1/1": {"group:staff"}}


def test_a_renamed_repository_keeps_its_ids_under_either_name() -> None:
    repo = handbook()
    with serve_github(GitHub(repo)) as place:
        source = place.connect("acme/handbook")
        held = Held()
        run(source, held)
        repo.name, repo.former_name = "acme/manual", "acme/handbook"
        assert documents(run(source, held)) == []
        assert readers(source).keys() == readers(place.connect("acme/manual")).keys()
        again = list(source.refetch(["hub:1/1"]))
    assert [one.parents for one in again if isinstance(one, Document)] == [("acme", "manual")]


def test_all_repositories_of_an_owner_are_read_except_excluded_ones() -> None:
    several = [Repo(id=one, name=f"acme/r{one}") for one in range(1, 251)]
    for one in several:
        one.put(Issue(number=7, title=f"Of {one.id}", body="x"))
    service = GitHub(*several, Repo(id=999, name="other/r"), members={"acme": []})
    with serve_github(service) as place:
        found = list_documents(place.connect("acme", exclude=("ACME/R2",)))
        ids = [one.document_id for one in found]
    assert ids == [f"hub:{one}/7" for one in range(1, 251) if one != 2]


def test_of_a_person_their_own_token_reads_all() -> None:
    service = GitHub(Repo(id=5, name="quarry-bot/notes", issues={1: Issue(number=1, title="x")}))
    with serve_github(service) as place:
        assert len(readers(place.connect("quarry-bot"))) == 1
        assert "/user/repos" in [request.path for request in place.server.log]


def test_where_issues_are_off_pull_requests_are_read_all_the_same() -> None:
    repo = handbook(has_issues=False)
    repo.put(
        Issue(number=2, title="Change", is_pull=True, comments=(Comment(by="bob", body="Yes."),))
    )
    del repo.issues[1]
    with serve_github(GitHub(repo)) as place:
        source = place.connect("acme/handbook")
        held = Held()
        (one,) = documents(run(source, held))
        assert "Yes." in [each.text for each in one.sections]
        assert documents(run(source, held)) == []
        assert list(source.refetch([one.id, "hub:1/1"])) == [one, Deletion("hub:1/1")]


@pytest.mark.parametrize("left_out", ["issues", "pull requests"])
def test_only_what_was_chosen_is_read(left_out: str) -> None:
    repo = handbook()
    repo.put(Issue(number=2, title="Change", is_pull=True))
    kinds = {"issues": "hub:1/1", "pull requests": "hub:1/2"}
    with serve_github(GitHub(repo)) as place:
        held = Held()
        part = place.connect("acme/handbook", contents=tuple(kinds.keys() - {left_out}))
        run(part, held)
        assert held.documents.keys() == set(kinds.values()) - {kinds[left_out]}
        assert readers(part).keys() == held.documents.keys()
        assert list(part.refetch([kinds[left_out]])) == [Deletion(kinds[left_out])]
        # with other settings what was left out comes in, old as it is
        run(place.connect("acme/handbook"), held)
    assert held.documents.keys() == set(kinds.values())


def test_a_later_run_asks_only_for_what_changed_since() -> None:
    service = GitHub(handbook())
    with serve_github(service) as place:
        source = place.connect("acme/handbook")
        held = Held()
        run(source, held)
        place.server.log.clear()
        service.repositories[0].put(Issue(number=2, title="New", at=service.now))
        assert [one.title for one in documents(run(source, held))] == ["New"]
        (request,) = [one for one in place.server.log if one.path.endswith("/issues")]
    assert request.param("since") > "2026-01-06"


@pytest.mark.parametrize("where", ["comments", "line_comments"])
def test_a_comment_that_was_edited_is_found_although_its_item_shows_no_change(where: str) -> None:
    service = GitHub(handbook())
    repo = service.repositories[0]
    first = Comment(by="bob", body="Befor.", path="a.py" if where == "line_comments" else "")
    repo.put(Issue(number=2, title="Change", is_pull=True))
    repo.change(2, **{where: (first,)})
    with serve_github(service) as place:
        source = place.connect("acme/handbook")
        held = Held()
        run(source, held)
        repo.change(2, **{where: (replace(first, body="After.", at=service.now),)})
        (one,) = documents(run(source, held))
        assert "After." in [each.text for each in one.sections]
        assert documents(run(source, held)) == []


def test_a_comment_on_what_was_deleted_ends_nothing() -> None:
    service = GitHub(handbook())
    repo = service.repositories[0]
    with serve_github(service) as place:
        source = place.connect("acme/handbook")
        held = Held()
        run(source, held)
        repo.orphaned_comments = [(9, service.now)]
        assert documents(run(source, held)) == []


def test_a_new_repository_is_read_completely() -> None:
    service = GitHub(handbook(), members={"acme": []})
    with serve_github(service) as place:
        source = place.connect("acme")
        held = Held()
        run(source, held)
        service.repositories.append(board("ann"))
        assert [one.id for one in documents(run(source, held))] == ["hub:2/1"]


def test_a_missing_repository_is_reported_after_the_others_are_read() -> None:
    repo = handbook()
    with serve_github(GitHub(repo)) as place:
        source = place.connect("acme/gone", "acme/handbook")
        held = Held()
        with pytest.raises(
            ActionRequiredError, match="acme/gone: no such repository, or the token"
        ):
            run(source, held)
        assert held.documents.keys() == {"hub:1/1"}
        repo.put(Issue(number=2, title="New", at=place.service.now))
        with pytest.raises(ActionRequiredError, match="acme/gone"):
            run(source, held)
        assert held.documents.keys() == {"hub:1/1", "hub:1/2"}
        assert all("acme/gone" in str(one.fault) for one in source.check())


def test_the_wait_of_a_secondary_rate_limit_is_exact() -> None:
    with serve_github(GitHub(handbook())) as place:
        place.service.fault = lambda _: secondary_limit(70)
        with pytest.raises(TemporarilyUnavailableError) as caught:
            read(place.connect("acme/handbook"))
    assert caught.value.retry_after == timedelta(seconds=70)


def test_single_sign_on_is_reported_with_the_url_to_authorize_the_token() -> None:
    where = "https://github.com/orgs/acme/sso?authorization_request=x"
    with serve_github(GitHub(handbook())) as place:
        place.service.fault = lambda _: denied(
            "Resource protected by organization SAML enforcement.",
            X_GitHub_SSO=f"required; url={where}",
        )
        with pytest.raises(ActionRequiredError, match="single sign-on") as caught:
            read(place.connect("acme/handbook"))
    assert where in str(caught.value)


def test_the_rights_that_a_token_lacks_are_named() -> None:
    with serve_github(GitHub(handbook())) as place:
        place.service.fault = lambda _: denied(
            "Resource not accessible by personal access token",
            X_Accepted_GitHub_Permissions="issues=read",
        )
        with pytest.raises(ActionRequiredError, match="it needs issues=read"):
            read(place.connect("acme/handbook"))


def test_a_blocked_item_is_unreadable() -> None:
    repo = handbook()
    repo.change(1, comments=(Comment(by="bob", body="x"),), status=451)
    with serve_github(GitHub(repo)) as place:
        changes = run(place.connect("acme/handbook"), Held())
    (bad,) = [one for one in changes if isinstance(one, Unreadable)]
    assert (bad.item, bad.document_id) == ("acme/handbook#1 Lathe", "hub:1/1")
    assert "451" in bad.reason


def test_ids_that_are_none_of_its_own_are_gone() -> None:
    ids = ["hub:9/1", "hub:1/2", "hub:1/x", "hub:", "other:1/1", "hub:1/" + "9" * 30]
    ids += [f"hub:1/{own}" for own in ("discussions/5", "discussions/x", "wiki/a.md", "files/a.md")]
    with serve_github(GitHub(handbook())) as place:
        gone = list(place.connect("acme/handbook").refetch(ids))
    assert len(gone) == len(ids)
    assert set(gone) == {Deletion(one) for one in ids}


@pytest.mark.parametrize(
    "value",
    [
        '{"github": "x", "since": "", "whole": [], "began": "", "walked": [], "at": null}',
        '{"github": null, "since": "2026-13-01T00:00:00Z"}',
    ],
)
def test_a_checkpoint_of_other_settings_begins_from_the_start(value: str) -> None:
    held = Held()
    held.since = Checkpoint(value)
    with serve_github(GitHub(handbook())) as place:
        assert len(documents(run(place.connect("acme/handbook"), held))) == 1


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("repositories", (), "at least 1"),
        ("repositories", ("acme/a/b",), "OWNER/NAME"),
        ("repositories", ("acme/..",), "OWNER/NAME"),
        ("repositories", ("acme/a?x=1",), "OWNER/NAME"),
        ("accounts", ("ann",), "LOGIN=E-MAIL"),
        ("accounts", ("ann=ann",), "not a reader"),
        ("public_readers", ("all",), "not a reader"),
        ("public_readers", ("external:2:team",), "is of a source"),
        ("api_url", "http://github.example.com/api/v3", "not encrypted"),
        ("api_url", "file:///etc", "not a web address"),
        ("private_hosts", ("10.0.0.1/8",), "cannot be allowed"),
        ("contents", ("code",), "issues"),
    ],
)
def test_invalid_settings_are_rejected(field: str, value: object, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        GitHubSettings.model_validate({"repositories": ("acme/handbook",), field: value})


def test_a_token_is_not_shown() -> None:
    source = connector("https://api.example.com", "acme/handbook")
    credential = GitHubCredential(token=SecretStr(TOKEN))
    assert TOKEN not in repr(credential) + repr(vars(source))
