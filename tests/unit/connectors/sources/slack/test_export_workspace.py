"""Slack by its export: the same documents as by the API."""

import json
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from connectors.access import Access
from connectors.connector import Checkpoint
from connectors.errors import ActionRequiredError
from connectors.sources.slack.connector import Kinds, SlackConnector, SlackCredential, SlackSettings
from connectors.sources.slack.settings import ApiSettings, ExportSettings
from tests.contract.connector_worlds.held import (
    Held,
    documents,
    list_documents,
    list_groups,
    resolve,
    run,
)
from tests.support.rights import may_read
from tests.support.services.serving import serve
from tests.support.services.slack import TOKEN, SlackService, build_export, person

_KINDS: Kinds = ("public", "private", "group", "direct")
_CHANNEL = b'[{"id": "C1", "name": "a"}]'


def acme() -> SlackService:
    """Ten days, with threads over several of them, in all kinds of places."""
    made = SlackService()
    made.users = [
        person("U1", "Ann Lee", "ann@example.com"),
        person("U2", "Bo Ek", "bo@example.com"),
        person("U3", "Gus", "gus@example.com", is_restricted=True),
    ]
    for own, name in {"C1": "general", "G2": "board", "M3": "mpdm-1", "D4": ""}.items():
        made.add_channel(own, name, ["U1", "U3"])
    begun = time.time() - 10 * 86_400
    for number in range(60):
        place = ("C1", "G2", "M3", "D4")[number % 4]
        at = begun + number * 3600
        root = made.post(place, f"number {number} <#G2> <@U2>", at=at, user=f"U{number % 3 + 1}")
        for days in range(number % 3):
            made.post(place, f"after {days}", to=root, at=at + days * 86_400 + 60, user="U2")
    made.post("C1", "<@U1> has joined the channel", subtype="channel_join")
    made.edit("C1", made.conversations["C1"].messages[0]["ts"], "number 0, mended")
    made.delete("C1", made.conversations["C1"].messages[2]["ts"])
    return made


def zipped(path: Path, files: Mapping[str, bytes], folder: str = "") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(f"{folder}{name}", content)
    return path


def exported(path: Path, **more: Any) -> SlackConnector:
    read = ExportSettings(path=path, workspace_url="https://acme.slack.com/")
    settings = SlackSettings(read=read, conversations=_KINDS, **more)
    return SlackConnector("s", 1, settings, SlackCredential())


def online(url: str) -> SlackConnector:
    read = ApiSettings(api_url=f"{url}/api", private_hosts=("127.0.0.1",))
    credential = SlackCredential(token=SecretStr(TOKEN))
    return SlackConnector("s", 1, SlackSettings(read=read, conversations=_KINDS), credential)


def test_an_export_gives_the_same_documents_as_the_api(tmp_path: Path) -> None:
    service = acme()
    archive = zipped(tmp_path / "export.zip", build_export(service))
    with serve(service) as server:
        by_api, listed = (
            documents(run(online(server.url), Held())),
            list(list_documents(online(server.url))),
        )
    assert len(by_api) == 60
    assert documents(run(exported(archive), Held())) == by_api
    assert list(list_documents(exported(archive))) == listed


def test_the_api_continues_where_an_export_ended(tmp_path: Path) -> None:
    service = acme()
    held = Held()
    run(exported(zipped(tmp_path / "export.zip", build_export(service))), held)
    service.post("C1", "new")
    with serve(service) as server:
        found = documents(run(online(server.url), held))
        assert [one.title for one in found] == ["new"]
        assert documents(run(online(server.url), held)) == []


def test_an_export_continues_where_the_api_ended(tmp_path: Path) -> None:
    service, held = acme(), Held()
    with serve(service) as server:
        run(online(server.url), held)
    service.post("C1", "new")
    archive = zipped(tmp_path / "export.zip", build_export(service))
    assert [one.title for one in documents(run(exported(archive), held))] == ["new"]


def test_an_export_is_read_once(tmp_path: Path) -> None:
    service, held = acme(), Held()
    archive = zipped(tmp_path / "export.zip", build_export(service))
    run(exported(archive), held)
    changes = run(exported(archive), held)
    assert changes == [held.since]
    # What is chosen is another, so there is something new in it.
    fewer = Held()
    run(exported(archive, exclude=("general",)), fewer)
    assert len(fewer.documents) == 45
    run(exported(archive), fewer)
    assert fewer.documents.keys() == held.documents.keys()


def test_an_export_may_lie_in_a_folder_of_its_zip(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "export.zip", build_export(acme()), folder="Acme export/")
    assert len(documents(run(exported(archive), Held()))) == 60


def test_a_file_is_named_but_not_fetched(tmp_path: Path) -> None:
    service = acme()
    url = "https://files.slack.com/files-pri/T1-F1/plan.txt?t=xoxe-1"
    file = {"id": "F1", "title": "The plan", "name": "plan.txt", "url_private": url}
    service.post("C1", "Look", files=[file])
    archive = zipped(tmp_path / "export.zip", build_export(service))
    first = documents(run(exported(archive), Held()))[0]
    assert [one.text for one in first.sections] == ["Ann Lee: Look\n[The plan]"]
    assert first.metadata["files_unread"] == ("The plan: an export has only the names of files",)


def test_odd_messages_in_an_export_are_skipped(tmp_path: Path) -> None:
    message = {"ts": "1700000000.000100", "user": "U1", "text": "hello", "blocks": None}
    files: dict[str, Any] = {
        "users.json": [],
        "channels.json": [{"id": "C1", "name": "general", "members": None}],
        "general/2023-11-14.json": [message, message, {}, None, {"ts": "soon"}, {"ts": None}],
        "general/2023-11-15.json": [{**message, "ts": "1700086400.000100", "thread_ts": "9.9"}],
        "general/canvas/notes.html": [],
        "integration_logs.json": [{"app_id": "A1"}],
    }
    archive = zipped(
        tmp_path / "export.zip", {name: json.dumps(one).encode() for name, one in files.items()}
    )
    (found,) = documents(run(exported(archive), Held()))
    assert found.id == "s:C1/1700000000.000100"
    assert found.sections[0].text == "U1: hello"
    assert found.access == Access.to(["external:1:C1"])
    assert {one.members for one in list_groups(exported(archive))} == {
        frozenset(),
        frozenset({"external:1:@workspace"}),
    }


def test_members_of_a_private_channel_are_those_that_the_export_lists(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "export.zip", build_export(acme()))
    groups = list_groups(exported(archive))
    people = ("ann", "bo", "gus")
    askers = {name: resolve(groups, f"user:{name}@example.com") for name in people}
    readers = {
        one.document_id[2:4]: {name for name in people if may_read(askers[name], one.access)}
        for one in list_documents(exported(archive))
    }
    inside = {"ann", "gus"}
    assert readers == {"C1": {"ann", "bo", "gus"}, "G2": inside, "M3": inside, "D4": inside}


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"readme.txt": b""}, "no users.json"),
        (
            {"users.json": b"[", "channels.json": _CHANNEL},
            "users.json .*export the workspace again",
        ),
        ({"users.json": b"{}", "channels.json": _CHANNEL}, "users.json .*not a list"),
        ({"users.json": b"[]", "channels.json": b"[1]"}, "invalid channel"),
        ({"users.json": b"[3]", "channels.json": _CHANNEL}, "invalid user"),
    ],
)
def test_an_invalid_export_is_an_error(tmp_path: Path, files: dict[str, bytes], says: str) -> None:
    message = b'[{"ts": "1.000001", "text": "a"}]'
    archive = zipped(tmp_path / "export.zip", {**files, "a/2020-01-01.json": message})
    with pytest.raises(ActionRequiredError, match=says):
        run(exported(archive), Held())


def test_a_file_that_is_not_a_zip_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "export.zip").write_bytes(b"PK")
    for path in (tmp_path / "export.zip", tmp_path / "none.zip"):
        with pytest.raises(ActionRequiredError, match="cannot be read as a zip"):
            run(exported(path), Held())
        assert all("cannot be read as a zip" in (one.fault or "") for one in exported(path).check())


def test_a_check_misses_channels_that_are_chosen(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "export.zip", build_export(acme()))
    assert all(one.fault is None for one in exported(archive).check())
    faults = {one.fault or "" for one in exported(archive, include=("none",)).check()}
    assert all("no channel of the export is selected" in fault for fault in faults)


def test_a_resumed_run_reads_another_export_from_the_start(tmp_path: Path) -> None:
    service, held = acme(), Held()
    archive = zipped(tmp_path / "export.zip", build_export(service))
    changes = exported(archive).changes(None, held.known)
    for change in changes:
        held.take(change)
        if isinstance(change, Checkpoint) and '"M3"' in change.value:
            break

    service.post("C1", "new")
    zipped(archive, build_export(service))
    run(exported(archive), held)
    assert "new" in {one.title for one in held.documents.values()}
    assert len(held.documents) == 61
