import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from connectors.access import Access
from connectors.connector import Capability
from connectors.errors import ActionRequiredError, InvalidInputError
from connectors.registry import (
    SOURCE_KINDS,
    InvalidSourceError,
    NoCredential,
    create_connector,
    display_name,
    get_fixed_access,
    get_intervals,
    get_retention,
    has_fixed_access,
    validate_source,
)


def test_a_connector_is_built_from_stored_settings(tmp_path: Path) -> None:
    stored = (
        SOURCE_KINDS["folder"].settings.model_validate({"path": tmp_path}).model_dump(mode="json")
    )
    assert create_connector("folder", "kb", stored).source == "kb"


def test_every_kind_says_what_it_can_do() -> None:
    assert SOURCE_KINDS["folder"].capabilities == frozenset(Capability)
    assert SOURCE_KINDS["folder"].credential is NoCredential


@pytest.mark.parametrize("kind", sorted(SOURCE_KINDS))
def test_readers_are_known_to_a_source_or_fixed_by_its_settings(kind: str) -> None:
    asks = Capability.ACCESS in SOURCE_KINDS[kind].capabilities
    assert asks != has_fixed_access(kind)


def test_fixed_readers_are_those_of_the_settings() -> None:
    mail = Access.to(["user:ann@example.com"])
    assert get_fixed_access("mbox", {"path": "/mail", "owner": "Ann@example.com"}) == mail
    site = {"url": "https://example.com/", "readers": ["group:staff"]}
    assert get_fixed_access("web", site) == Access.to(["group:staff"])
    assert get_fixed_access("folder", {"path": "/kb"}) is None
    with pytest.raises(InvalidInputError, match="settings are not valid: url: Field required"):
        get_fixed_access("web", {"readers": ["public"]})
    assert not has_fixed_access("fax")


def test_what_shows_only_its_latest_says_how_long_the_rest_stays() -> None:
    settings = {"url": "https://news.test/feed", "readers": ["public"], "keep_days": 30}
    found = get_retention("feed", settings)
    assert found is not None
    assert found.period == timedelta(days=30)
    assert get_retention("folder", {"path": "/kb"}) is None
    with pytest.raises(InvalidInputError, match="settings are not valid: readers: Field required"):
        get_retention("feed", {"url": "https://news.test/feed"})


def test_expensive_sources_are_asked_seldom_by_default() -> None:
    local, remote, site = map(get_intervals, ("folder", "slack", "web"))
    assert local.access < remote.access
    assert local.deletions < remote.deletions
    assert local.content == remote.content < site.content
    assert get_intervals("fax") == local


def test_a_kind_is_loaded_when_it_is_looked_at() -> None:
    code = "import sys, connectors.registry as c; c.SOURCE_KINDS['folder']; print('httpx' in sys.modules, end=' ');"
    code += "c.SOURCE_KINDS['web']; print('httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.parametrize(
    ("kind", "source", "settings", "says"),
    [
        ("fax", "kb", {}, "unknown kind of source: 'fax'; known are: .*folder"),
        ("folder", "kb", {}, "settings of kb are not valid: path: Field required"),
        ("folder", "kb", {"path": "/kb", "exlude": []}, "exlude: Extra inputs"),
        ("folder", "kb", {"path": "/kb", "include": ["a**"]}, "include: .*must stand alone"),
        ("folder", "kb", {"path": "/kb", "largest_file": 0}, "largest_file: "),
        ("folder", "k:b", {"path": "/kb"}, "cannot name a source"),
        ("folder", "", {"path": "/kb"}, "cannot name a source"),
    ],
)
def test_what_cannot_be_built_says_why(
    kind: str, source: str, settings: dict[str, object], says: str
) -> None:
    with pytest.raises(ActionRequiredError, match=says):
        create_connector(kind, source, settings)


def test_what_is_entered_is_stored_as_json_and_named_after_what_it_reads(tmp_path: Path) -> None:
    folder = tmp_path / "my  files"
    folder.mkdir()
    found = validate_source("folder", {"path": str(folder), "exclude": ["*.tmp"]})
    assert found.name == "my-files"
    assert found.settings == {"path": str(folder), "exclude": ["*.tmp"]}
    assert validate_source("folder", {"path": str(folder)}, name="kb").name == "kb"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://code.example.com/team/handbook.git", "handbook"),
        ("https://code.example.com/", "code.example.com"),
        ("git@code.example.com:wiki.git", "git@code.example.com-wiki"),
    ],
)
def test_a_name_is_the_end_of_an_address(url: str, name: str) -> None:
    assert validate_source("git", {"url": url, "readers": ["public"]}).name == name


def _faults(kind: str, settings: dict[str, object], **more: object) -> dict[str, str]:
    with pytest.raises(InvalidSourceError) as refused:
        validate_source(kind, settings, **more)  # type: ignore[arg-type]
    return {".".join(one.path): one.message for one in refused.value.errors}


def test_each_fault_is_reported_where_it_stands() -> None:
    credential = {"sign_in": {"kind": "token", "tokn": "x"}}
    faults = _faults("git", {"branch": "a b"}, credential=credential)
    assert {
        "settings.url",
        "settings.readers",
        "settings.branch",
        "credential.sign_in.token",
    } <= set(faults)
    assert faults["settings.url"] == "Required."


def test_a_fault_of_a_credential_does_not_repeat_it() -> None:
    credential = {"sign_in": {"kind": "token", "token": "hunter2\nhunter2"}}
    faults = _faults("git", {"url": "/srv/x.git", "readers": ["public"]}, credential=credential)
    assert list(faults) == ["credential.sign_in.token"]
    assert "hunter2" not in str(faults)


@pytest.mark.parametrize("path", ["/no/such/folder", "~nobody-of-this-name/x", "x" * 4_000, "\0"])
def test_a_folder_must_be_there_when_it_is_added_not_later(path: str) -> None:
    assert list(_faults("folder", {"path": path})) == ["settings.path"]


def test_a_folder_that_went_away_is_still_a_source(tmp_path: Path) -> None:
    assert create_connector("folder", "kb", {"path": str(tmp_path / "gone")}).source == "kb"


def test_a_name_that_cannot_begin_ids_is_a_fault_of_the_name(tmp_path: Path) -> None:
    assert list(_faults("folder", {"path": str(tmp_path)}, name="a:b")) == ["name"]


def test_kinds_are_called_as_people_write_them() -> None:
    assert display_name("folder") == "Folder"
    assert display_name("fax_machine") == "Fax machine"
