import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import pytest
from pydantic import SecretStr, ValidationError

from connectors.access import EVERYBODY, NOBODY, Access
from connectors.connector import (
    Change,
    Checkpoint,
    Connector,
    Deletion,
    DocumentCount,
    DocumentListing,
    Unreadable,
)
from connectors.document import Document, Person
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.git_repository.credentials import GitCredential, Token
from connectors.sources.git.connector import GitConnector, GitSettings
from tests.contract.connector_worlds.held import list_documents, list_groups
from tests.contract.connector_worlds.world import SOURCE_ID
from tests.support.repository import Delete, Move, Repository, Write
from tests.support.services.git_http import TOKEN, GitHttp
from tests.support.services.serving import ReceivedRequest, Reply, redirect, serve

C = TypeVar("C")
BO = "Bo Yu <bo@example.com>"
DAY = 86_400


@pytest.fixture
def kb(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "kb.git")


def git(kb: Repository, **settings: object) -> GitConnector:
    values = {"url": str(kb.folder), "readers": ["public"], **settings}
    return GitConnector("kb", SOURCE_ID, GitSettings.model_validate(values), GitCredential())


def over_http(url: str, token: str = TOKEN, **settings: object) -> GitConnector:
    values = {"url": url, "readers": ["public"], "private_hosts": ["127.0.0.1"], **settings}
    credential = GitCredential(sign_in=Token(token=SecretStr(token)))
    return GitConnector("kb", SOURCE_ID, GitSettings.model_validate(values), credential)


def put(**files: str) -> list[Write]:
    """Markdown files by their names."""
    return [Write(f"{name}.md", content.encode()) for name, content in files.items()]


def nothing(_ids: Sequence[str]) -> Mapping[str, str]:
    return {}


def holding(versions: Mapping[str, str]) -> Callable[[Sequence[str]], Mapping[str, str]]:
    return lambda ids: {one: versions[one] for one in ids if one in versions}


def of(kind: type[C], changes: Sequence[Change]) -> list[C]:
    return [change for change in changes if isinstance(change, kind)]


def run(connector: Connector, since: Checkpoint | None = None) -> list[Change]:
    return list(connector.changes(since, nothing))


def documents(connector: Connector) -> dict[str, Document]:
    return {one.id: one for one in of(Document, run(connector))}


def last(changes: Sequence[Change]) -> Checkpoint:
    assert isinstance(changes[-1], Checkpoint)
    return changes[-1]


def describe(changes: Sequence[Change]) -> list[str]:
    """Each change of a document, as its kind and the end of its id."""
    return [
        f"{type(one).__name__} {(one.id if isinstance(one, Document) else one.document_id)[3:]}"
        for one in changes
        if not isinstance(one, Checkpoint | DocumentCount)
    ]


def test_a_file_becomes_a_document(kb: Repository) -> None:
    blob = Write("hr/leave/2026_annual-leave.md", b"Thirty days.")
    kb.commit(blob, by=BO, at=3 * DAY, says="Say it.\n\nCo-authored-by: Cy <CY@example.com>\n")
    (found,) = documents(git(kb)).values()
    oid = kb.git("rev-parse", "main:hr/leave/2026_annual-leave.md")
    assert found.id == "kb:hr/leave/2026_annual-leave.md"
    assert found.source == "kb"
    assert found.title == "2026 annual leave"
    assert found.link == f"file://{kb.folder}/hr/leave/2026_annual-leave.md"
    assert found.media_type == "text/markdown"
    assert found.access == EVERYBODY
    assert found.parents == ("kb", "hr", "leave")
    assert found.metadata == {"repository": "kb", "path": "hr/leave/2026_annual-leave.md"}
    assert found.version == f"1:{oid}"
    assert found.owners == (Person("Bo Yu", "bo@example.com"), Person("Cy", "cy@example.com"))
    assert found.updated_at == datetime(1970, 1, 4, tzinfo=UTC)
    assert [one.text for one in found.sections] == ["Thirty days."]


def test_each_file_was_last_touched_by_its_own_last_commit(kb: Repository) -> None:
    kb.commit(*put(a="1", b="1", c="1"), at=1 * DAY)
    kb.commit(*put(b="2"), by=BO, at=2 * DAY)
    kb.commit(Write("d\n\x01e.md", b"1"), by=BO, at=3 * DAY)
    kb.commit(at=4 * DAY)
    kb.commit(*put(c="side"), branch="side", at=5 * DAY)
    actual = {
        one.id: (one.updated_at.day, one.owners[0].name)
        for one in documents(git(kb)).values()
        if one.updated_at is not None
    }
    assert actual == {
        "kb:a.md": (2, "Ann Lee"),
        "kb:b.md": (3, "Bo Yu"),
        "kb:c.md": (2, "Ann Lee"),
        "kb:d\n\x01e.md": (4, "Bo Yu"),
    }


def test_a_merge_is_a_touch_where_it_decides(kb: Repository) -> None:
    base = kb.commit(*put(a="1", b="1"), at=1 * DAY)
    kb.git("update-ref", "refs/heads/side", base)
    kb.commit(*put(a="2"), at=2 * DAY, branch="side")
    kb.commit(*put(a="3"), at=3 * DAY)
    tree = kb.git("mktree", stdin=_tree(kb, {"a.md": b"both", "b.md": b"1"}))
    merge = _commit(kb, tree, "main", "side", at=4 * DAY)
    kb.git("update-ref", "refs/heads/main", merge)
    days = {one.id: one.updated_at for one in documents(git(kb)).values()}
    assert days == {
        "kb:a.md": datetime(1970, 1, 5, tzinfo=UTC),
        "kb:b.md": datetime(1970, 1, 2, tzinfo=UTC),
    }


def _tree(kb: Repository, files: Mapping[str, bytes]) -> bytes:
    lines = (
        f"100644 blob {kb.git('hash-object', '-w', '--stdin', stdin=content)}\t{name}\n"
        for name, content in files.items()
    )
    return "".join(lines).encode()


def _commit(kb: Repository, tree: str, *parents: str, at: int) -> str:
    head = "".join(f"parent {kb.git('rev-parse', one)}\n" for one in parents)
    who = f"Ann Lee <ann@example.com> {at} +0000"
    text = f"tree {tree}\n{head}author {who}\ncommitter {who}\n\nA merge.\n"
    return kb.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=text.encode())


def test_links_other_repositories_hidden_files_and_litter_are_left_out(kb: Repository) -> None:
    outside = Write("link.md", b"/etc/passwd", mode="120000")
    names = (".a", ".git-like/b", "~$c.docx", "Thumbs.db", "x/desktop.ini", "e.md")
    commit = kb.commit(outside, *(Write(name, b"x") for name in names))
    stream = f"commit refs/heads/main\ncommitter A <a@b> 1 +0000\ndata 1\nx\nfrom {commit}\n"
    kb.import_([stream.encode(), f"M 160000 {commit} other\n".encode()])
    assert describe(run(git(kb))) == ["Document e.md"]
    assert list(list_documents(git(kb))) == [DocumentListing("kb:e.md", EVERYBODY)]


def test_a_file_that_becomes_a_link_is_gone(kb: Repository) -> None:
    kb.commit(*put(a="1", b="1"))
    since = last(run(git(kb)))
    kb.commit(Write("a.md", b"b.md", mode="120000"))
    assert describe(run(git(kb), since)) == ["Deletion a.md"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["a.md", "x/b.md", "x/c.txt", "x/drafts/d.md"]),
        ({"include": ["**/*.md"]}, ["a.md", "x/b.md", "x/drafts/d.md"]),
        ({"exclude": ["**/drafts"]}, ["a.md", "x/b.md", "x/c.txt"]),
        ({"include": ["x/**"], "exclude": ["x/*.txt"]}, ["x/b.md", "x/drafts/d.md"]),
    ],
)
def test_globs_choose_the_files(
    kb: Repository, settings: dict[str, object], expected: list[str]
) -> None:
    kb.commit(*(Write(path, b"text") for path in ("a.md", "x/b.md", "x/c.txt", "x/drafts/d.md")))
    connector = git(kb, **settings)
    assert [one.metadata["path"] for one in documents(connector).values()] == expected
    assert [one.document_id for one in list_documents(connector)] == [
        f"kb:{path}" for path in expected
    ]


def test_other_globs_begin_from_the_start(kb: Repository) -> None:
    kb.commit(*put(a="1", b="1"))
    changes = run(git(kb, include=["a.md"]))
    held = {one.id: one.version for one in of(Document, changes)}
    again = list(git(kb).changes(last(changes), holding(held)))
    assert describe(again) == ["Document b.md"]


def test_a_name_that_is_no_unicode_is_kept_apart(kb: Repository) -> None:
    kb.commit(Write(b"caf\xe9.md", b"1"), Write("café.md", b"2"))
    assert set(documents(git(kb))) == {"kb:/caf%E9.md", "kb:café.md"}
    (one,) = git(kb).refetch(["kb:/caf%E9.md"])
    assert isinstance(one, Document)
    assert one.link.endswith("/caf%E9.md")


def test_what_cannot_be_read_is_named(kb: Repository) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    kb.commit(
        Write("a.md", b""),
        Write("b.md", b"x" * 1001),
        Write("c.png", b"\x89PNG"),
        Write("d.pdf", pointer),
        Write("e.pdf", b"%PDF-1.4 broken"),
    )
    found = {one.item: one.reason for one in of(Unreadable, run(git(kb, largest_file=1000)))}
    assert list(found) == ["a.md", "b.md", "c.png", "d.pdf", "e.pdf"]
    assert found["a.md"] == "the file is empty"
    assert found["b.md"] == "1,001 bytes; the limit is 1,000"
    assert "image/png" in found["c.png"]
    assert "Git LFS" in found["d.pdf"]


def test_a_moved_file_is_gone_here_and_new_there(kb: Repository) -> None:
    kb.commit(*put(a="1", b="1", c="1"))
    since = last(run(git(kb)))
    kb.commit(Move("a.md", "z/a.md"), Delete("b.md"), *put(c="2"))
    assert describe(run(git(kb), since)) == [
        "Deletion a.md",
        "Deletion b.md",
        "Document c.md",
        "Document z/a.md",
    ]


def test_a_program_that_was_made_executable_is_unchanged(kb: Repository) -> None:
    kb.commit(*put(a="1"))
    changes = run(git(kb))
    held = {one.id: one.version for one in of(Document, changes)}
    kb.commit(Write("a.md", b"1", mode="100755"))
    assert describe(list(git(kb).changes(last(changes), holding(held)))) == []


def test_a_history_that_was_written_anew_is_compared_with_what_was_read(kb: Repository) -> None:
    kb.commit(*put(a="1", b="1"), at=1 * DAY)
    base = kb.git("rev-parse", "main")
    kb.commit(*put(b="2", c="1"), at=2 * DAY)
    since = last(run(git(kb)))
    kb.git("update-ref", "refs/heads/main", base)
    kb.commit(*put(d="1"), at=3 * DAY)
    changes = run(git(kb), since)
    assert describe(changes) == ["Deletion c.md", "Document b.md", "Document d.md"]
    days = {one.id: one.updated_at for one in of(Document, changes)}
    # what b.md says now was said before the commit that is no more
    assert days["kb:b.md"] == datetime(1970, 1, 2, tzinfo=UTC)


def test_where_the_old_commit_is_gone_all_is_compared_and_nothing_lost(kb: Repository) -> None:
    kb.commit(*put(a="1", b="1", c="1"))
    changes = run(git(kb))
    held = {one.id: one.version for one in of(Document, changes)}
    stream = b"commit refs/heads/main\ncommitter A <a@b> 1 +0000\ndata 1\nx\n"
    kb.import_([stream, b"M 100644 inline a.md\ndata 1\n1\nM 100644 inline b.md\ndata 1\n2\n"])
    kb.git("reflog", "expire", "--expire=now", "--all")
    kb.git("gc", "--quiet", "--prune=now")
    again = list(git(kb).changes(last(changes), holding(held)))
    assert describe(again) == ["Document b.md"]
    assert {one.document_id for one in list_documents(git(kb))} == {"kb:a.md", "kb:b.md"}


def test_a_run_that_was_broken_off_ends_at_its_own_commit_and_goes_on(kb: Repository) -> None:
    kb.commit(*(Write(f"{number:03}.md", b"1") for number in range(250)))
    first = of(Checkpoint, run(git(kb)))[0]
    kb.commit(Write("000.md", b"2"), Delete("249.md"))
    rest = describe(run(git(kb), first))
    assert rest[:50] == [f"Document {number:03}.md" for number in range(200, 250)]
    assert rest[50:] == ["Deletion 249.md", "Document 000.md"]


def test_another_branch_can_be_read(kb: Repository) -> None:
    kb.commit(*put(a="1"))
    kb.commit(*put(b="1"), branch="release/2.0")
    assert list(documents(git(kb, branch="release/2.0"))) == ["kb:b.md"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"branch": "nowhere"}, "kb.git: the branch 'nowhere' does not exist: correct the name"),
        ({}, "kb.git: the default branch has no commits"),
        ({"url": "/nowhere/at/all"}, "/nowhere/at/all is not a git repository"),
    ],
)
def test_what_the_owner_must_mend_is_said(
    kb: Repository, settings: dict[str, object], says: str
) -> None:
    connector = git(kb, **settings)
    with pytest.raises(ActionRequiredError, match=says):
        run(connector)
    with pytest.raises(ActionRequiredError, match=says):
        list(list_documents(connector))
    assert all(says in (one.fault or "") for one in connector.check())


def test_who_may_read_is_known_by_the_owner(kb: Repository) -> None:
    kb.commit(*put(a="1"))
    with pytest.raises(ValidationError, match="readers"):
        GitSettings.model_validate({"url": "/kb"})
    asked = git(kb, readers=["group:hr", "user:Ann@Example.com"])
    (group,), (found,) = list_groups(asked), documents(asked).values()
    assert group.members == {"group:hr", "user:ann@example.com"}
    assert group.name == "readers in the settings"
    assert found.access == Access.to([group.token])
    assert list_groups(git(kb, readers=[])) == [replace(group, members=frozenset())]
    assert [one.access for one in list_documents(git(kb, readers=[]))] == [found.access]
    assert list_groups(git(kb)) == []
    assert [one.access for one in list_documents(git(kb))] == [EVERYBODY]


def test_an_access_file_decides_instead_and_is_no_document(kb: Repository) -> None:
    rules = b'rules:\n  - {match: hr/**, readers: ["group:hr"]}\n'
    kb.commit(Write("access.yaml", rules), Write("hr/a.md", b"1"), Write("b.md", b"1"))
    found = {one.id: one.access for one in documents(git(kb)).values()}
    (hr,) = list_groups(git(kb))
    assert hr.members == {"group:hr"}
    assert found == {"kb:b.md": NOBODY, "kb:hr/a.md": Access.to([hr.token])}


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (Write("access.yaml", b"rules: 1"), "access.yaml of .*kb.git, line 1: 'rules' must be a list"),
        (Write("access.yaml", b"b.md", mode="120000"), "access.yaml of .* must be a file"),
        (Write("access.yaml/a.md", b"x"), "access.yaml of .* must be a file"),
        (Write("access.yml", b"rules: []"), "rename access.yml to access.yaml"),
        (Write("ACCESS.YML", b"rules: []"), "rename ACCESS.YML to access.yaml"),
        (Write("access.yaml", b"#" * 1_000_001), "larger than 1,000,000 bytes"),
    ],
)  # fmt: skip
def test_rules_that_are_not_understood_open_nothing(kb: Repository, file: Write, says: str) -> None:
    kb.commit(file, *put(b="1"))
    for ask in (
        lambda: run(git(kb)),
        lambda: list(list_documents(git(kb))),
        lambda: list_groups(git(kb)),
    ):
        with pytest.raises(ActionRequiredError, match=says):
            ask()


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "-oProxyCommand=x"},
        {"url": "http://example.com/kb"},
        {"branch": "--upload-pack=x"},
        {"branch": "a b"},
        {"readers": ["everybody"]},
        {"include": ["a**"]},
        {"private_hosts": ["http://x"]},
        {"hosting": "sourceforge"},
        {"largest_file": 0},
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        GitSettings.model_validate({"url": "/kb", "readers": ["public"], **settings})


def test_nothing_that_a_repository_configures_is_run(kb: Repository, tmp_path: Path) -> None:
    """Hooks, helpers and filters that would each leave a file behind."""
    trap = f"touch {tmp_path}/sprung; false"
    kb.commit(*put(a="1"), Write(".gitattributes", b"* filter=trap diff=trap"))
    for key in (
        "core.fsmonitor",
        "core.sshCommand",
        "uploadpack.packObjectsHook",
        "filter.trap.smudge",
        "diff.trap.textconv",
        "diff.external",
    ):
        kb.git("config", key, trap)
    for hook in ("post-checkout", "reference-transaction", "post-update", "pre-auto-gc"):
        (kb.folder / "hooks").mkdir(exist_ok=True)
        (kb.folder / "hooks" / hook).write_text(f"#!/bin/sh\n{trap}\n")
        (kb.folder / "hooks" / hook).chmod(0o755)
    assert list(documents(git(kb))) == ["kb:a.md"]
    assert not (tmp_path / "sprung").exists()


def test_no_folder_is_left_behind(
    kb: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place := tmp_path / "place").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    kb.commit(*put(a="1"))
    run(git(kb))
    broken_off = git(kb).changes(None, nothing)
    assert isinstance(broken_off, Iterator)
    next(broken_off)
    assert len(list(place.iterdir())) == 1
    del broken_off
    assert list(place.iterdir()) == []


def test_a_mirror_that_stays_fetches_only_what_is_new(kb: Repository, tmp_path: Path) -> None:
    server = GitHttp(tmp_path)
    kb.git("config", "uploadpack.allowFilter", "true")
    kb.commit(*(Write(f"{number:03}.md", os.urandom(2000).hex().encode()) for number in range(50)))
    with serve(server) as service:
        connector = over_http(f"{service.url}/kb.git", mirror=str(tmp_path / "mirror"))
        since = last(run(connector))
        before = _size(tmp_path / "mirror")
        kb.commit(Write("001.md", b"2"))
        changes = run(connector, since)
    assert describe(changes) == ["Document 001.md"]
    assert before > 50 * 2000
    assert _size(tmp_path / "mirror") - before < 5000


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_a_mirror_that_a_killed_process_left_locked_is_used(kb: Repository, tmp_path: Path) -> None:
    kb.commit(*put(a="1"))
    connector = git(kb, mirror=str(tmp_path / "mirror"))
    run(connector)
    (copy,) = (tmp_path / "mirror").glob("*/copy.git")
    (copy / "refs/quarry/tip.lock").touch()
    (copy / "config.lock").touch()
    kb.commit(*put(b="1"))
    assert list(documents(connector)) == ["kb:a.md", "kb:b.md"]


def test_two_repositories_share_a_place_for_mirrors(kb: Repository, tmp_path: Path) -> None:
    other = Repository(tmp_path / "other/kb.git")
    kb.commit(*put(a="1"))
    other.commit(*put(b="1"))
    place = str(tmp_path / "mirror")
    assert list(documents(git(kb, mirror=place))) == ["kb:a.md"]
    assert list(documents(git(other, mirror=place))) == ["kb:b.md"]


def test_a_branch_that_stands_still_is_only_asked_for(kb: Repository, tmp_path: Path) -> None:
    kb.commit(*put(a="1"))
    with serve(GitHttp(tmp_path)) as service:
        connector = over_http(f"{service.url}/kb.git")
        since = last(run(connector))
        service.log.clear()
        assert run(connector, since) == [since]
        assert [one.path for one in service.log] == ["/kb.git/info/refs", "/kb.git/git-upload-pack"]


def test_only_the_contents_that_are_read_come_over_the_network(
    kb: Repository, tmp_path: Path
) -> None:
    kb.git("config", "uploadpack.allowFilter", "true")
    kb.commit(*put(a="1"), Write("large.bin", os.urandom(500_000)))
    kb.commit(Delete("large.bin"), Write("video.md", os.urandom(500_000)))
    with serve(GitHttp(tmp_path)) as service:
        mirror = tmp_path / "mirror"
        connector = over_http(f"{service.url}/kb.git", mirror=str(mirror), exclude=["video.md"])
        assert list(documents(connector)) == ["kb:a.md"]
        list(list_documents(connector))
    assert _size(mirror) < 100_000


def test_a_token_is_in_no_argument_and_in_no_file(kb: Repository, tmp_path: Path) -> None:
    seen: list[bytes] = []
    server = GitHttp(tmp_path)

    def watched(request: ReceivedRequest) -> Reply:
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                seen.append(file.read_bytes())
            except OSError:
                continue
        return server(request)

    kb.commit(*put(a="1"))
    with serve(watched) as service:
        connector = over_http(f"{service.url}/kb.git", mirror=str(tmp_path / "mirror"))
        assert list(documents(connector)) == ["kb:a.md"]
    assert any(b"git-remote-http" in words for words in seen)
    secrets = (TOKEN.encode(), b"eC1hY2Nlc3M")  # and how its base64 begins
    assert not any(secret in words for words in seen for secret in secrets)
    files = [one.read_bytes() for one in (tmp_path / "mirror").rglob("*") if one.is_file()]
    assert not any(secret in content for content in files for secret in secrets)


def test_a_repository_that_has_moved_is_not_followed() -> None:
    asked_elsewhere: list[ReceivedRequest] = []

    def elsewhere(request: ReceivedRequest) -> Reply:
        asked_elsewhere.append(request)
        return Reply()

    with (
        serve(elsewhere) as there,
        serve(lambda request: redirect(f"{there.url}{request.path}", 301)) as here,
        pytest.raises(ActionRequiredError, match=f"has moved to {there.url}"),
    ):
        run(over_http(f"{here.url}/kb.git"))
    assert asked_elsewhere == []


def test_a_wrong_token_and_a_repository_that_is_not_there(kb: Repository, tmp_path: Path) -> None:
    kb.commit(*put(a="1"))
    with serve(GitHttp(tmp_path)) as service:
        with pytest.raises(ActionRequiredError, match="does not accept the token: make an access"):
            run(over_http(f"{service.url}/kb.git", token="wrong"))
        with pytest.raises(ActionRequiredError, match="there is no repository at"):
            run(over_http(f"{service.url}/nothing.git"))
        values = {"url": f"{service.url}/kb.git", "readers": [], "private_hosts": ["127.0.0.1"]}
        anonymous = GitConnector(
            "kb", SOURCE_ID, GitSettings.model_validate(values), GitCredential()
        )
        with pytest.raises(ActionRequiredError, match="needs a credential"):
            run(anonymous)


def test_a_token_that_may_not_read_is_distinguished_from_one_that_has_ended() -> None:
    with (
        serve(
            lambda _: Reply(status=403, body=b"Write access to repository not granted.")
        ) as server,
        pytest.raises(
            ActionRequiredError, match="does not allow it to read the repository: make an access"
        ),
    ):
        run(over_http(f"{server.url}/kb.git"))


def test_a_server_that_is_away_is_asked_later(tmp_path: Path) -> None:
    with serve(GitHttp(tmp_path)) as service:
        url = service.url
    with pytest.raises(TemporarilyUnavailableError):
        run(over_http(f"{url}/kb.git"))


def test_a_server_inside_is_asked_only_where_it_is_allowed(kb: Repository, tmp_path: Path) -> None:
    kb.commit(*put(a="1"))
    with serve(GitHttp(tmp_path, requires_token=False)) as service:
        allowed = over_http(f"{service.url}/kb.git")
        assert [one.fault for one in allowed.check()] == [None, None, None]
        service.log.clear()
        other = over_http(f"{service.url}/kb.git", private_hosts=["10.0.0.0/8"])
        with pytest.raises(ActionRequiredError, match=r"127\.0\.0\.1 is this machine itself"):
            run(other)
        assert service.log == []


def test_without_the_program_its_owner_is_informed(
    kb: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert shutil.which("git") is None
    with pytest.raises(ActionRequiredError, match="git is not installed"):
        run(git(kb))
    assert all(one.fault for one in git(kb).check())


def test_ids_of_no_file_are_deletions(kb: Repository) -> None:
    kb.commit(*put(a="1"), Write("x/b.md", b"1"))
    ids = ["kb:x", "kb:../a.md", "kb:", "kb:/%00", "kb:-a", "kb:.hidden"]
    assert list(git(kb).refetch(ids)) == [Deletion(one) for one in ids]


def test_a_checkpoint_names_the_commit(kb: Repository) -> None:
    commit = kb.commit(*put(a="1"))
    assert json.loads(last(run(git(kb))).value)["commit"] == commit
