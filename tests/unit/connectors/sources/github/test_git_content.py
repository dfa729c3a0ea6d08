"""Files and wikis of GitHub, against repositories that git serves."""

from pathlib import Path

import pytest

from connectors.access import Access
from connectors.connector import Checkpoint, Deletion, Unreadable
from connectors.document import Person
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.http_client.address_guard import AddressNotAllowedError
from connectors.sources.github.connector import GitHubConnector
from connectors.sources.github.git_content import get_web_url
from tests.contract.connector_worlds.held import Held, documents, run, taking
from tests.support.repository import Delete, Move, Repository, Write
from tests.support.services.github import TOKEN, GitHub
from tests.support.services.github_place import (
    ServedGitHub,
    board,
    connector,
    create_repository,
    handbook,
    of_accounts,
    only,
    read,
    readers,
    serve_github,
)
from tests.support.services.serving import ReceivedRequest, Reply, serve

DAY = 86_400


@pytest.fixture
def code(tmp_path: Path) -> Repository:
    return create_repository(tmp_path, "acme/handbook")


@pytest.fixture
def pages(tmp_path: Path) -> Repository:
    return create_repository(tmp_path, "acme/handbook.wiki")


@pytest.fixture
def service(tmp_path: Path) -> GitHub:
    return GitHub(handbook(has_wiki=True), folder=tmp_path)


def files(place: ServedGitHub, **settings: object) -> GitHubConnector:
    return place.connect("acme/handbook", contents=("files",), **settings)


def wiki(place: ServedGitHub, **settings: object) -> GitHubConnector:
    return place.connect("acme/handbook", contents=("wiki",), **settings)


def test_a_wiki_page_is_a_document_named_as_the_page(service: GitHub, pages: Repository) -> None:
    page = Write("machines/Oil-the-lathe.md", b"# Every day\n\nFrom above.")
    pages.commit(page, by="Bo Yu <bo@example.com>", at=3 * DAY)
    with serve_github(service) as place:
        one = only(wiki(place))
        assert list(wiki(place).refetch([one.id])) == [one]
    assert (one.id, one.title) == ("hub:1/wiki/machines/Oil-the-lathe.md", "Oil the lathe")
    assert one.link == "https://github.test/acme/handbook/wiki/Oil-the-lathe"
    assert one.parents == ("acme", "handbook", "wiki", "machines")
    assert one.metadata == {
        "repository": "acme/handbook",
        "kind": "wiki page",
        "path": "machines/Oil-the-lathe.md",
    }
    assert one.owners == (Person("Bo Yu", "bo@example.com"),)
    assert str(one.updated_at) == "1970-01-04 00:00:00+00:00"
    assert one.access == Access.to(["external:1:repository/1"])
    assert [(each.place.heading_path, each.text) for each in one.sections] == [
        (("Every day",), "From above.")
    ]


def test_only_pages_of_a_wiki_are_read(service: GitHub, pages: Repository) -> None:
    names = ("Home.md", "Über uns.mediawiki", "_Sidebar.md", "_Footer.md", "plan.png", ".hidden.md")
    pages.commit(*(Write(name, b"Says something.") for name in names))
    with serve_github(service) as place:
        links = [one.link for one in read(wiki(place))]
    of_wiki = "https://github.test/acme/handbook/wiki"
    assert links == [f"{of_wiki}/Home", f"{of_wiki}/%C3%9Cber-uns"]


def test_a_wiki_without_a_page_or_none_at_all_is_no_trouble(
    service: GitHub, tmp_path: Path
) -> None:
    with serve_github(service) as place:
        source, held = wiki(place), Held()
        assert documents(run(source, held)) == []
        assert readers(source) == {}
        assert list(source.refetch(["hub:1/wiki/a.md"])) == [Deletion("hub:1/wiki/a.md")]
        assert [one.fault for one in source.check()] == [None, None, None]
        pages = create_repository(tmp_path, "acme/handbook.wiki")
        assert documents(run(source, held)) == []
        pages.commit(Write("Home.md", b"Here."))
        assert [one.title for one in documents(run(source, held))] == ["Home"]


def test_a_disabled_wiki_is_not_requested(service: GitHub, pages: Repository) -> None:
    pages.commit(Write("Home.md", b"Here."))
    service.repositories[0].has_wiki = False
    with serve_github(service) as place:
        assert read(wiki(place)) == []
        assert not [one.path for one in place.server.log if ".git" in one.path]


def test_a_file_is_a_document_that_is_read_at_the_branch(service: GitHub, code: Repository) -> None:
    code.commit(Write("docs/a b.md", b"# Leave\n\nThirty days."), at=3 * DAY)
    with serve_github(service) as place:
        one = only(files(place))
        assert list(files(place).refetch([one.id])) == [one]
    assert (one.id, one.title) == ("hub:1/files/docs/a b.md", "Leave")
    assert one.link == "https://github.test/acme/handbook/blob/main/docs/a%20b.md"
    assert one.parents == ("acme", "handbook", "docs")
    assert one.metadata == {"repository": "acme/handbook", "kind": "file", "path": "docs/a b.md"}
    assert one.owners == (Person("Ann Lee", "ann@example.com"),)
    assert one.access == Access.to(["external:1:repository/1"])


def test_globs_choose_the_files(service: GitHub, code: Repository) -> None:
    code.commit(*(Write(name, b"x") for name in ("a.md", "b.py", "docs/c.md", "drafts/d.md")))
    globs = {"include_files": ("**/*.md",), "exclude_files": ("drafts",)}
    with serve_github(service) as place:
        source, held = files(place, **globs), Held()
        run(source, held)
        assert held.documents.keys() == {"hub:1/files/a.md", "hub:1/files/docs/c.md"}
        assert readers(source).keys() == held.documents.keys()
        left_out = "hub:1/files/drafts/d.md"
        assert list(source.refetch([left_out])) == [Deletion(left_out)]
        # with other globs what was left out comes in, old as it is
        assert [one.id for one in documents(run(files(place), held))] == [
            "hub:1/files/b.py",
            left_out,
        ]


def test_files_and_pages_follow_their_history(
    service: GitHub, code: Repository, pages: Repository
) -> None:
    code.commit(Write("a.md", b"1"), Write("b.md", b"1"), Write("c.md", b"1"))
    pages.commit(Write("Home.md", b"1"), Write("Other.md", b"1"))
    with serve_github(service) as place:
        source, held = place.connect("acme/handbook", contents=("wiki", "files")), Held()
        run(source, held)
        code.commit(Move("a.md", "z/a.md"), Delete("b.md"))
        pages.commit(Write("Home.md", b"2"))
        changes = run(source, held)
        place.server.log.clear()
        assert [one for one in run(source, held) if not isinstance(one, Checkpoint)] == []
    assert [one.id for one in documents(changes)] == ["hub:1/wiki/Home.md", "hub:1/files/z/a.md"]
    gone = [one.document_id for one in changes if isinstance(one, Deletion)]
    assert gone == ["hub:1/files/a.md", "hub:1/files/b.md"]
    # where nothing has changed, each branch is asked where it ends, and no more
    request = [one.path.partition(".git/")[2] for one in place.server.log if ".git/" in one.path]
    assert request == ["info/refs", "git-upload-pack"] * 2


def test_an_interrupted_run_resumes_among_the_files(service: GitHub, code: Repository) -> None:
    code.commit(*(Write(f"{number:03}.md", b"1") for number in range(250)))
    with serve_github(service) as place:
        source, held = files(place), Held()
        for change in taking(source, held):
            if isinstance(change, Checkpoint):
                break
        assert len(held.documents) == 200
        code.commit(Write("000.md", b"2"))
        rest = [one.id for one in documents(run(source, held))]
    assert rest == [
        *(f"hub:1/files/{number}.md" for number in range(200, 250)),
        "hub:1/files/000.md",
    ]


def test_what_cannot_be_read_is_named(service: GitHub, code: Repository) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    code.commit(Write("x/a.pdf", pointer), Write("b.md", b"x" * 1001))
    with serve_github(service) as place:
        changes = run(files(place, largest_file=1000), Held())
    bad = [one for one in changes if isinstance(one, Unreadable)]
    assert [(one.item, one.document_id) for one in bad] == [
        ("acme/handbook/b.md", "hub:1/files/b.md"),
        ("acme/handbook/x/a.pdf", "hub:1/files/x/a.pdf"),
    ]
    assert "Git LFS" in bad[1].reason
    assert bad[1].link == "https://github.test/acme/handbook/blob/main/x/a.pdf"


def test_who_may_read_the_repository_may_read_its_files_and_its_wiki(tmp_path: Path) -> None:
    private = board("ann", "bob")
    private.has_wiki = True
    service = GitHub(private, folder=tmp_path)
    service.profiles = {"ann": "ann@example.com", "bob": "bob@example.com"}
    create_repository(tmp_path, "acme/board").commit(Write("a.md", b"x"))
    create_repository(tmp_path, "acme/board.wiki").commit(Write("Home.md", b"x"))
    ids = {"hub:2/files/a.md", "hub:2/wiki/Home.md"}
    with serve_github(service) as place:
        source = place.connect("acme/board", contents=("files", "wiki"))
        before = readers(source)
        private.collaborators.remove("bob")
        after = readers(source)
    assert before == dict.fromkeys(ids, of_accounts("ann", "bob"))
    assert after == dict.fromkeys(ids, of_accounts("ann"))


def test_a_renamed_repository_keeps_the_ids_and_the_copy_of_its_files(
    service: GitHub, code: Repository, tmp_path: Path
) -> None:
    code.commit(Write("a.md", b"1"))
    with serve_github(service) as place:
        source, held = files(place, mirror=str(tmp_path / "mirror")), Held()
        run(source, held)
        (copy,) = (tmp_path / "mirror").iterdir()
        repo = service.repositories[0]
        repo.name, repo.former_name = "acme/manual", "acme/handbook"
        code.folder = code.folder.rename(tmp_path / "acme/manual.git")
        code.commit(Write("b.md", b"1"))
        (one,) = documents(run(source, held))
    assert (one.id, one.parents) == ("hub:1/files/b.md", ("acme", "manual"))
    assert list((tmp_path / "mirror").iterdir()) == [copy]


def test_a_repository_without_a_commit_has_no_files(service: GitHub, code: Repository) -> None:
    del code
    with serve_github(service) as place:
        assert read(files(place)) == []
        assert [one.fault for one in files(place).check()] == [None, None, None]


def test_files_that_the_token_may_not_read_are_reported_after_the_rest_is_read(
    service: GitHub,
) -> None:
    with serve_github(service) as place:
        source, held = place.connect("acme/handbook", contents=("files", "issues")), Held()
        with pytest.raises(ActionRequiredError, match=r"no repository at .*/acme/handbook\.git"):
            run(source, held)
        assert held.documents.keys() == {"hub:1/1"}
        with pytest.raises(ActionRequiredError, match="make a token that may read it"):
            readers(source)
        assert all("handbook.git" in str(one.fault) for one in source.check())


def test_a_limit_of_git_is_waited_for(service: GitHub, code: Repository) -> None:
    code.commit(Write("a.md", b"1"))
    limited = Reply(status=403, headers={"Retry-After": "70"}, body=b"secondary rate limit")
    with serve_github(service) as place:
        service.requests_before_fault, service.fault = 1, lambda _: limited
        with pytest.raises(TemporarilyUnavailableError) as caught:
            read(files(place))
    assert caught.value.retry_after.total_seconds() == 70


def test_the_token_is_in_no_address_no_argument_no_file_and_no_message(
    service: GitHub, code: Repository, tmp_path: Path
) -> None:
    code.commit(Write("a.md", b"1"))
    seen: list[bytes] = []

    def watched(request: ReceivedRequest) -> Reply:
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                seen.append(file.read_bytes())
            except OSError:
                continue
        return service(request)

    with serve(watched) as server:
        settings = {"contents": ("files",), "mirror": str(tmp_path / "mirror")}
        read(connector(server.url, "acme/handbook", **settings))
        assert not [one for one in server.log if TOKEN in one.path + str(one.query)]
        code.folder.rename(tmp_path / "away.git")
        with pytest.raises(ActionRequiredError) as caught:
            read(connector(server.url, "acme/handbook", **settings))
    assert any(b"git-remote-http" in words for words in seen)
    kept = [one.read_bytes() for one in (tmp_path / "mirror").rglob("*") if one.is_file()]
    actual = [*seen, *kept, str(caught.value).encode()]
    assert not [one for one in actual if TOKEN.encode() in one or b"Z2hwX3JpZ2h0" in one]


def test_git_connects_to_allowed_addresses_only(code: Repository, service: GitHub) -> None:
    """The host of the API is the one that is asked, whatever address the API tells."""
    code.commit(Write("a.md", b"1"))
    with serve_github(service) as place:
        with pytest.raises(AddressNotAllowedError, match=r"127\.0\.0\.1"):
            read(files(place, private_hosts=("10.0.0.0/8",)))
        assert place.server.log == []


@pytest.mark.parametrize(
    ("api", "web"),
    [
        ("https://api.github.com", "https://github.com"),
        ("https://api.acme.ghe.com", "https://acme.ghe.com"),
        ("https://git.example/api/v3", "https://git.example"),
        ("https://api.example:8443/api/v3", "https://api.example:8443"),
    ],
)
def test_people_and_git_go_to_the_web_address(api: str, web: str) -> None:
    assert get_web_url(api) == web
