import errno
import json
import os
import pwd
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from unittest.mock import Mock

import pytest

from connectors.access import EVERYBODY, NOBODY, Access
from connectors.connector import (
    Change,
    Checkpoint,
    Deletion,
    DocumentCount,
    DocumentListing,
    Unchanged,
    Unreadable,
)
from connectors.document import Document, Person
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.files.walker import InaccessiblePath
from connectors.sources.folder import connector as folder_module
from connectors.sources.folder.connector import FolderConnector, FolderSettings, check_listable
from tests.contract.connector_worlds.held import list_documents, list_groups
from tests.contract.connector_worlds.world import SOURCE_ID
from tests.support.files import email, pdf

C = TypeVar("C")


def put(root: Path, files: Mapping[str, str | bytes]) -> None:
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)


def folder(root: Path, **settings: object) -> FolderConnector:
    return FolderConnector(
        "kb", SOURCE_ID, FolderSettings.model_validate({"path": root, **settings})
    )


def nothing(_ids: Sequence[str]) -> Mapping[str, str]:
    return {}


def holding(versions: Mapping[str, str]) -> Callable[[Sequence[str]], Mapping[str, str]]:
    return lambda ids: {one: versions[one] for one in ids if one in versions}


def of(kind: type[C], changes: Sequence[Change]) -> list[C]:
    return [change for change in changes if isinstance(change, kind)]


def run(connector: FolderConnector, versions: Mapping[str, str] | None = None) -> list[Change]:
    return list(connector.changes(None, holding(versions or {})))


def documents(connector: FolderConnector) -> dict[str, Document]:
    return {one.id: one for one in of(Document, run(connector))}


def versions(connector: FolderConnector) -> dict[str, str]:
    return {one.id: one.version for one in of(Document, run(connector))}


def test_a_file_becomes_a_document(tmp_path: Path) -> None:
    put(tmp_path, {"hr/leave/2026_annual-leave.md": "Thirty days."})
    os.utime(tmp_path / "hr/leave/2026_annual-leave.md", (1_767_600_000, 1_767_600_000))
    (found,) = documents(folder(tmp_path)).values()
    assert found.id == "kb:hr/leave/2026_annual-leave.md"
    assert found.source == "kb"
    assert found.title == "2026 annual leave"
    assert found.link == (tmp_path / "hr/leave/2026_annual-leave.md").as_uri()
    assert found.media_type == "text/markdown"
    assert found.access == EVERYBODY
    assert found.parents == ("hr", "leave")
    assert found.metadata == {"path": "hr/leave/2026_annual-leave.md"}
    assert found.updated_at == datetime(2026, 1, 5, 8, tzinfo=UTC)
    assert [one.text for one in found.sections] == ["Thirty days."]


def test_what_the_format_states_goes_before_the_name_and_time_of_the_file(tmp_path: Path) -> None:
    mail = email("Leave", "x", From="Ann <ann@example.com>", Date="Mon, 05 Jan 2026 08:00:00 +0000")
    put(tmp_path, {"a.eml": mail, "b.md": "# The policy\nx", "c.pdf": pdf("x")})
    found = documents(folder(tmp_path))
    assert [one.title for one in found.values()] == ["Leave", "The policy", "c"]
    assert found["kb:a.eml"].owners == (Person("Ann", "ann@example.com"),)
    assert found["kb:a.eml"].updated_at == datetime(2026, 1, 5, 8, tzinfo=UTC)


def test_hidden_files_folders_and_litter_are_left_out(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            ".a": "x",
            ".git/b": "x",
            "~$c.docx": "x",
            "Thumbs.db": "x",
            "lost+found/d": "x",
            "e": "x",
        },
    )
    assert list(documents(folder(tmp_path))) == ["kb:e"]
    assert [one.document_id for one in list_documents(folder(tmp_path))] == ["kb:e"]


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
    tmp_path: Path, settings: dict[str, object], expected: list[str]
) -> None:
    put(tmp_path, dict.fromkeys(["a.md", "x/b.md", "x/c.txt", "x/drafts/d.md"], "text"))
    connector = folder(tmp_path, **settings)
    assert [one.metadata["path"] for one in documents(connector).values()] == expected
    assert [one.document_id for one in list_documents(connector)] == [
        f"kb:{path}" for path in expected
    ]


def test_a_second_run_yields_nothing(tmp_path: Path) -> None:
    put(tmp_path, {"a.md": "x", "b/c.md": "y"})
    connector = folder(tmp_path)
    changes = run(connector, versions(connector))
    assert {type(change) for change in changes} == {DocumentCount, Checkpoint}


def test_only_what_was_edited_is_yielded_again(tmp_path: Path) -> None:
    put(tmp_path, {"a.md": "x", "b.md": "y", "c.md": "z"})
    held = versions(folder(tmp_path))
    put(tmp_path, {"b.md": "new"})
    changes = run(folder(tmp_path), held)
    assert [one.id for one in of(Document, changes)] == ["kb:b.md"]
    assert not of(Unchanged, changes)


def test_an_edit_of_the_same_size_is_seen_by_its_time(tmp_path: Path) -> None:
    put(tmp_path, {"a.md": "x"})
    held = versions(folder(tmp_path))
    put(tmp_path, {"a.md": "y"})
    os.utime(tmp_path / "a.md", (1, 1))
    assert [one.id for one in of(Document, run(folder(tmp_path), held))] == ["kb:a.md"]


def test_a_touched_file_is_unchanged_under_a_new_version(tmp_path: Path) -> None:
    put(tmp_path, {"a.md": "x"})
    held = versions(folder(tmp_path))
    os.utime(tmp_path / "a.md", (1_767_600_000, 1_767_600_000))
    (unchanged,) = of(Unchanged, run(folder(tmp_path), held))
    assert unchanged.document_id == "kb:a.md"
    assert unchanged.version != held["kb:a.md"]
    assert not of(Unchanged, run(folder(tmp_path), {"kb:a.md": unchanged.version}))


def test_a_renamed_file_is_a_new_one_and_the_listing_lacks_the_old(tmp_path: Path) -> None:
    put(tmp_path, {"a.md": "x"})
    held = versions(folder(tmp_path))
    (tmp_path / "a.md").rename(tmp_path / "b.md")
    assert [one.id for one in of(Document, run(folder(tmp_path), held))] == ["kb:b.md"]
    assert [one.document_id for one in list_documents(folder(tmp_path))] == ["kb:b.md"]


@pytest.mark.parametrize("version", ["", "nonsense", "0:1:1:aa", "1:1:1", f"2:1:1:{'a' * 64}"])
def test_a_version_of_another_kind_means_reading_again(tmp_path: Path, version: str) -> None:
    put(tmp_path, {"a.md": "x"})
    assert len(of(Document, run(folder(tmp_path), {"kb:a.md": version}))) == 1


RULES = """\
rules:
  - {match: hr/**, readers: [group:hr]}
  - {match: "*.md", readers: [public]}
"""


def test_the_access_file_says_who_may_read_and_is_not_indexed(tmp_path: Path) -> None:
    put(tmp_path, {"access.yaml": RULES, "a.md": "x", "hr/pay.md": "y", "it/b.md": "z"})
    put(tmp_path, {"hr/access.yaml": "only at the root it has a meaning"})
    (hr,) = list_groups(folder(tmp_path))
    assert (set(hr.members), hr.name) == ({"group:hr"}, "access.yaml: hr/**")
    expected = {
        "kb:a.md": EVERYBODY,
        "kb:hr/access.yaml": Access.to([hr.token]),
        "kb:hr/pay.md": Access.to([hr.token]),
        "kb:it/b.md": NOBODY,
    }
    assert {key: one.access for key, one in documents(folder(tmp_path)).items()} == expected
    listed = list(list_documents(folder(tmp_path)))
    assert listed == [DocumentListing(key, access) for key, access in expected.items()]


def test_the_listing_reports_new_rules_for_unchanged_files(tmp_path: Path) -> None:
    put(tmp_path, {"access.yaml": RULES, "a.md": "x"})
    held = versions(folder(tmp_path))
    put(tmp_path, {"access.yaml": "rules: []"})
    assert not of(Document, run(folder(tmp_path), held))
    assert list(list_documents(folder(tmp_path))) == [DocumentListing("kb:a.md", NOBODY)]


def test_another_folder_has_other_rules_though_they_read_the_same(tmp_path: Path) -> None:
    for name in ("one", "two"):
        put(tmp_path / name, {"access.yaml": RULES})
    one, two = (list_groups(folder(tmp_path / name))[0].token for name in ("one", "two"))
    assert one != two


def test_a_malformed_access_file_stops_everything_before_the_first_file(tmp_path: Path) -> None:
    put(tmp_path, {"access.yaml": "rules:\n  - match: a**\n", "a.md": "x"})
    for start in (
        lambda: run(folder(tmp_path)),
        lambda: list(list_documents(folder(tmp_path))),
        lambda: list_groups(folder(tmp_path)),
    ):
        with pytest.raises(ActionRequiredError, match=r"access\.yaml, line 2: "):
            start()


@pytest.mark.parametrize("name", ["access.yml", "Access.yaml", "ACCESS.YML"])
def test_rules_under_a_name_almost_right_do_not_open_the_folder_to_all(
    tmp_path: Path, name: str
) -> None:
    put(tmp_path, {name: RULES, "a.md": "x"})
    with pytest.raises(ActionRequiredError, match=r"rename the file to access\.yaml"):
        run(folder(tmp_path))


def test_an_access_file_that_cannot_be_read_does_not_open_the_folder_to_all(tmp_path: Path) -> None:
    put(tmp_path, {"a.md": "x"})
    (tmp_path / "access.yaml").symlink_to("nowhere")
    with pytest.raises(ActionRequiredError, match="cannot be read"):
        run(folder(tmp_path))
    (tmp_path / "access.yaml").unlink()
    (tmp_path / "access.yaml").mkdir()
    with pytest.raises(ActionRequiredError, match="must be a file"):
        list(list_documents(folder(tmp_path)))


def test_an_access_file_elsewhere_is_not_shown_by_its_faults(tmp_path: Path) -> None:
    (tmp_path / "keys.yaml").write_text("top-secret: 1\n")
    put(tmp_path / "files", {"a.md": "x", "shared/rules.yaml": RULES})
    access = tmp_path / "files/access.yaml"
    access.symlink_to(tmp_path / "keys.yaml")
    with pytest.raises(ActionRequiredError, match="leads out of the folder") as caught:
        run(folder(tmp_path / "files"))
    assert "top-secret" not in str(caught.value)
    access.unlink()
    access.symlink_to("shared/rules.yaml")
    assert run(folder(tmp_path / "files"))


@pytest.mark.parametrize("name", ["nowhere", "file", "loop"])
def test_a_folder_that_is_not_there_never_looks_empty(tmp_path: Path, name: str) -> None:
    put(tmp_path, {"file": "x"})
    (tmp_path / "loop").symlink_to("loop")
    connector = folder(tmp_path / name)
    for start in (lambda: run(connector), lambda: list(list_documents(connector))):
        with pytest.raises(ActionRequiredError, match="cannot be opened"):
            start()


def test_a_folder_that_goes_away_during_a_listing_is_tried_later(tmp_path: Path) -> None:
    root = tmp_path / "disk"
    put(root, {"a.md": "x", "b/c.md": "y"})
    listing = list_documents(folder(root))
    next(listing)
    root.rename(tmp_path / "elsewhere")
    with pytest.raises(TemporarilyUnavailableError, match="went away"):
        list(listing)


def test_another_folder_in_the_place_of_the_first_is_noticed(tmp_path: Path) -> None:
    root = tmp_path / "disk"
    put(root, {"a.md": "x", "b/c.md": "y"})
    listing = list_documents(folder(root))
    next(listing)
    root.rename(tmp_path / "elsewhere")
    root.mkdir()
    with pytest.raises(TemporarilyUnavailableError, match="went away"):
        list(listing)


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    put(tmp_path / "real", {"a.md": "x"})
    (tmp_path / "link").symlink_to("real")
    assert list(documents(folder(tmp_path / "link"))) == ["kb:a.md"]


def test_links_inside_are_not_followed(tmp_path: Path) -> None:
    put(tmp_path, {"out/secret.md": "x", "root/a.md": "y"})
    (tmp_path / "root/secret.md").symlink_to("../out/secret.md")
    (tmp_path / "root/again.md").symlink_to("a.md")
    assert list(documents(folder(tmp_path / "root"))) == ["kb:a.md"]


def test_what_cannot_be_read_is_named_with_its_reason_and_ends_nothing(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "a.pdf": "%PDF-1.7 broken",
            "b.png": b"\x89PNG",
            "c.md": "",
            "d.bin": bytes(range(256)),
            "e.md": "fine",
            "f.txt": "x" * 301,
        },
    )
    changes = run(folder(tmp_path, largest_file=300))
    assert [one.id for one in of(Document, changes)] == ["kb:e.md"]
    assert [(one.item, one.reason.split(":")[0]) for one in of(Unreadable, changes)] == [
        ("a.pdf", "it is not a valid PDF"),
        ("b.png", "image/png is not a supported format"),
        ("c.md", "the file is empty"),
        ("d.bin", "application/octet-stream is not a supported format"),
        ("f.txt", "301 bytes; the limit is 300"),
    ]
    assert len(list(list_documents(folder(tmp_path)))) == 6
    assert of(DocumentCount, changes) == [DocumentCount(6)]


def test_what_is_unreadable_for_good_is_read_again_only_once_it_changes(tmp_path: Path) -> None:
    put(tmp_path, {"a.pdf": "%PDF-1.7 broken", "b.png": b"\x89PNG", "c.md": ""})
    bad = {one.document_id: one.version or "" for one in of(Unreadable, run(folder(tmp_path)))}
    assert all(bad.values())
    assert of(Unreadable, run(folder(tmp_path), bad)) == []

    os.utime(tmp_path / "a.pdf", (1, 1))
    (same,) = of(Unchanged, run(folder(tmp_path), bad))
    assert same.document_id == "kb:a.pdf"
    put(tmp_path, {"a.pdf": pdf("mended"), "b.png": b"\x89PNG of another size"})
    changes = run(folder(tmp_path), {**bad, "kb:a.pdf": same.version})
    assert [one.id for one in of(Document, changes)] == ["kb:a.pdf"]
    assert [one.item for one in of(Unreadable, changes)] == ["b.png"]


def test_a_file_that_may_become_readable_as_it_is_has_no_version(tmp_path: Path) -> None:
    put(tmp_path, {"y.md": "x"})

    def meanwhile(_ids: Sequence[str]) -> Mapping[str, str]:
        (tmp_path / "y.md").unlink()
        os.mkfifo(tmp_path / "y.md")
        return {}

    changes = list(folder(tmp_path).changes(None, meanwhile))
    assert [one.version for one in of(Unreadable, changes)] == [None]


def test_files_that_go_or_change_their_kind_meanwhile_end_nothing(tmp_path: Path) -> None:
    put(tmp_path, {"a.md": "x", "b.md": "x", "c.md": "x", "d.md": "x"})

    def meanwhile(_ids: Sequence[str]) -> Mapping[str, str]:
        (tmp_path / "a.md").unlink()
        (tmp_path / "b.md").unlink()
        os.mkfifo(tmp_path / "b.md")
        (tmp_path / "c.md").unlink()
        (tmp_path / "c.md").symlink_to("/etc/passwd")
        return {}

    changes = list(folder(tmp_path).changes(None, meanwhile))
    assert [one.id for one in of(Document, changes)] == ["kb:d.md"]
    assert [one.item for one in of(Unreadable, changes)] == ["b.md", "c.md"]


def test_names_of_any_kind_have_stable_ids_that_are_unicode(tmp_path: Path) -> None:
    for name in (b"caf\xe9.md", b"%E9.md", "規程.md".encode(), b"a\nb.md"):
        (tmp_path / os.fsdecode(name)).write_bytes(b"text")
    found = documents(folder(tmp_path))
    assert sorted(found) == ["kb:%E9.md", "kb:/caf%E9.md", "kb:a\nb.md", "kb:規程.md"]
    assert found["kb:/caf%E9.md"].title == "caf\ufffd"
    assert found["kb:/caf%E9.md"].link.endswith("/caf%E9.md")
    for one in found.values():
        "".join([one.id, one.title, one.link, str(one.metadata), *one.parents]).encode()
    assert [one.document_id for one in list_documents(folder(tmp_path))] == list(found)


def test_a_run_resumes_after_a_checkpoint_in_the_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "_FILES_PER_CHECKPOINT", 3)
    put(tmp_path, {f"{n % 3}/{n}.md": str(n) for n in range(10)})
    changes = run(folder(tmp_path))
    asked: list[int] = []

    def known(ids: Sequence[str]) -> Mapping[str, str]:
        asked.append(len(ids))
        return {}

    for place, change in enumerate(changes):
        if isinstance(change, Checkpoint):
            rest = list(folder(tmp_path).changes(change, known))
            last = place == len(changes) - 1
            assert rest == (changes[1:] if last else [DocumentCount(10), *changes[place + 1 :]])
    assert max(asked) == 3


@pytest.mark.parametrize("value", ["", "nonsense", "[]", "{}", '{"after": 1}', '{"after": [1]}'])
def test_a_checkpoint_that_says_nothing_begins_from_the_start(tmp_path: Path, value: str) -> None:
    put(tmp_path, {"a.md": "x"})
    changes = list(folder(tmp_path).changes(Checkpoint(value), nothing))
    assert len(of(Document, changes)) == 1


def test_checkpoints_are_ascii_whatever_the_names(tmp_path: Path) -> None:
    (tmp_path / "規\udce9.md").write_bytes(b"text")
    checkpoints = of(Checkpoint, run(folder(tmp_path)))
    assert all(one.value.isascii() for one in checkpoints)
    assert [json.loads(one.value)["after"] for one in checkpoints] == [["規\udce9.md"], None]


def test_an_empty_folder_is_a_whole_run(tmp_path: Path) -> None:
    assert [type(change) for change in run(folder(tmp_path))] == [DocumentCount, Checkpoint]
    assert list(list_documents(folder(tmp_path))) == []


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("2026_annual-leave.md", "2026 annual leave"),
        ("release v1.2", "release v1.2"),
        ("a.b.tar.md", "a.b.tar"),
        ("---.md", "---.md"),
        ("cafe\u0301.txt", "caf\u00e9"),
    ],
)
def test_a_name_becomes_a_readable_title(tmp_path: Path, name: str, title: str) -> None:
    put(tmp_path, {name: "text"})
    assert [one.title for one in documents(folder(tmp_path)).values()] == [title]


def test_an_endless_title_is_shortened(tmp_path: Path) -> None:
    put(tmp_path, {"a.html": f"<title>{'x' * 1000}</title><p>text"})
    (found,) = documents(folder(tmp_path)).values()
    assert found.title == "x" * 300 + "…"


def test_a_folder_that_cannot_be_looked_into_is_named(tmp_path: Path) -> None:
    """A path beyond what the system allows stands for all that only the system refuses."""
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("d" * 200, dir_fd=here)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    put(tmp_path, {"e.md": "fine"})
    changes = run(folder(tmp_path))
    (unreadable,) = of(Unreadable, changes)
    assert unreadable.reason == "File name too long"
    assert [one.id for one in of(Document, changes)] == ["kb:e.md"]
    listed = [one.document_id for one in list_documents(folder(tmp_path))]
    assert listed == [unreadable.document_id, "kb:e.md"]


@pytest.mark.parametrize(
    ("error", "raised", "says"),
    [
        (
            PermissionError(errno.EACCES, "no"),
            ActionRequiredError,
            "hr cannot be listed .*exclude it",
        ),
        (
            OSError(errno.EIO, "Input/output error"),
            TemporarilyUnavailableError,
            r"hr cannot be listed \(Input/output error\)",
        ),
    ],
)
def test_what_cannot_be_listed_never_looks_deleted(
    error: OSError, raised: type[Exception], says: str
) -> None:
    with pytest.raises(raised, match=says):
        check_listable(InaccessiblePath(("hr",), error))


def test_an_absurd_time_is_left_out(tmp_path: Path) -> None:
    put(tmp_path, {"a.md": "x"})
    os.utime(tmp_path / "a.md", ns=(0, -(10**18)))
    (found,) = documents(folder(tmp_path)).values()
    assert found.updated_at is None or found.updated_at.year < 1970


def test_settings_are_checked_and_the_path_is_made_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert FolderSettings(path=Path("kb")).path == tmp_path / "kb"
    assert FolderSettings(path=Path("~/kb")).path == tmp_path / "me/kb"
    with pytest.raises(ValueError, match="write the whole path"):
        FolderSettings(path=Path("~root/kb"))
    with pytest.raises(ValueError, match="must stand alone"):
        FolderSettings(path=tmp_path, exclude=("a**",))


def test_without_a_home_folder_a_path_cannot_begin_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs as a user whom its system does not know."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", Mock(side_effect=KeyError("uid not found")))
    with pytest.raises(ValueError, match="no home folder"):
        FolderSettings(path=Path("~/kb"))


def test_what_is_no_path_of_a_file_is_gone(tmp_path: Path) -> None:
    ids = [f"docs:{own}" for own in ("", "..", "../etc/passwd", "a\0b", "/%00", "/", "gone.md")]
    connector = FolderConnector("docs", SOURCE_ID, FolderSettings(path=tmp_path))
    assert list(connector.refetch(ids)) == [Deletion(each) for each in ids]
