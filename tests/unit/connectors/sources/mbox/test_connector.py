from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError

from connectors.access import NOBODY, Access
from connectors.connector import Capability, Change, Checkpoint, Deletion
from connectors.document import Document
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.sources.mbox.connector import MboxConnector, MboxSettings
from tests.support.services.imap import message

SEPARATOR = b"From ann@example.com Mon Jan  5 10:00:00 2026\n"


def mbox(*messages: bytes) -> bytes:
    return b"".join(SEPARATOR + one + b"\n" for one in messages)


def connector(path: Path, **settings: object) -> MboxConnector:
    values = {"path": path, "owner": "ann@example.com", **settings}
    return MboxConnector("old", MboxSettings.model_validate(values))


def documents(source: MboxConnector) -> dict[str, Document]:
    changes = source.changes(None, lambda _: {})
    return {one.title: one for one in changes if isinstance(one, Document)}


FIRST = message("Room", "Shall we meet at five?", "a")
SECOND = message(
    "Re: Room", "Yes.\n\n> Shall we meet at five?", "b", In_Reply_To="<a@mail.example.com>"
)


def test_a_conversation_over_two_files_is_one_document(tmp_path: Path) -> None:
    (tmp_path / "2025").mkdir()
    (tmp_path / "2025" / "Inbox").write_bytes(mbox(FIRST))
    (tmp_path / "Sent.mbox").write_bytes(mbox(SECOND))
    (one,) = documents(connector(tmp_path)).values()
    assert one.id == "old:a@mail.example.com"
    assert [section.text for section in one.sections] == ["Shall we meet at five?", "Yes."]
    assert one.parents == ("2025", "Inbox")
    assert one.link == (tmp_path / "2025" / "Inbox").as_uri()
    assert one.access == Access.to(["user:ann@example.com"])


def test_only_files_that_begin_as_mbox_files_do_are_read(tmp_path: Path) -> None:
    (tmp_path / "mail").write_bytes(mbox(FIRST))
    (tmp_path / "mail.msf").write_bytes(b"// an index")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / ".hidden").write_bytes(mbox(message("Hidden", "x", "h")))
    (tmp_path / "other.mbox").write_bytes(mbox(message("Other", "x", "o")))
    assert documents(connector(tmp_path)).keys() == {"Room", "Other"}
    assert documents(connector(tmp_path, include=["*.mbox"])).keys() == {"Other"}
    assert documents(connector(tmp_path, exclude=["*.mbox"])).keys() == {"Room"}


def test_of_one_file_its_neighbors_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(mbox(FIRST))
    (tmp_path / "other").write_bytes(mbox(message("Other", "x", "o")))
    (tmp_path / "mine.d").mkdir()
    (tmp_path / "mine.d" / "mine").write_bytes(mbox(message("Deeper", "x", "d")))
    assert documents(connector(tmp_path / "mine")).keys() == {"Room"}


def test_a_name_that_is_no_unicode_can_be_read(tmp_path: Path) -> None:
    path = Path(f"{tmp_path}/caf\udce9.mbox")
    path.write_bytes(mbox(FIRST))
    (one,) = documents(connector(tmp_path)).values()
    assert one.link.endswith("/caf%E9.mbox")
    "".join(one.parents).encode()


def test_a_file_that_grew_yields_what_came_to_an_old_conversation(tmp_path: Path) -> None:
    path = tmp_path / "mail"
    path.write_bytes(mbox(FIRST, message("Other", "x", "o")))
    source = connector(path)
    held: dict[str, str] = {}
    assert _run(source, held, None)[0] == 2
    count, since = _run(source, held, None)
    assert count == 0
    with path.open("ab") as file:
        file.write(mbox(SECOND))
    count, since = _run(source, held, since)
    assert count == 1
    # unchanged since: not even compared
    asked: list[str] = []

    def known(ids: object) -> Mapping[str, str]:
        asked.append(str(ids))
        return held

    assert list(source.changes(since, known)) == [since]
    assert asked == []


def _run(
    source: MboxConnector, held: dict[str, str], since: Checkpoint | None
) -> tuple[int, Checkpoint]:
    """How many documents changed, and the last checkpoint."""
    changes: list[Change] = list(source.changes(since, lambda _: held))
    found = [one for one in changes if isinstance(one, Document)]
    held.update({one.id: one.version for one in found})
    last = changes[-1]
    assert isinstance(last, Checkpoint)
    return len(found), last


def test_a_file_that_is_written_anew_while_it_is_read_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "mail"
    many = [message(f"M{number}", "x", f"m{number}") for number in range(300)]
    path.write_bytes(mbox(*many))
    changes = connector(path).changes(None, lambda _: {})
    next(changes)
    # it grew: all is where it was
    with path.open("ab") as file:
        file.write(mbox(FIRST))
    while not isinstance(next(changes), Checkpoint):
        pass
    path.write_bytes(mbox(*many[50:]))
    with pytest.raises(TemporarilyUnavailableError, match="changed while it was read"):
        list(changes)


def test_what_is_gone_is_reported(tmp_path: Path) -> None:
    (tmp_path / "mail").write_bytes(mbox(FIRST))
    source = connector(tmp_path)
    assert list(source.refetch(["old:gone@x"])) == [Deletion("old:gone@x")]
    with pytest.raises(ActionRequiredError, match="does not exist"):
        list(connector(tmp_path / "nothing").changes(None, lambda _: {}))
    faults = {one.capability: one.fault for one in connector(tmp_path / "nothing").check()}
    assert faults.keys() == set(Capability)
    assert all("does not exist" in str(fault) for fault in faults.values())


def test_whose_mail_it_is_must_be_said(tmp_path: Path) -> None:
    (tmp_path / "mail").write_bytes(mbox(FIRST))
    nobodys = connector(tmp_path, owner="")
    assert documents(nobodys)["Room"].access == NOBODY
    content, listing, access = nobodys.check()
    assert (content.fault, listing.fault) == (None, None)
    assert "set owner or readers" in str(access.fault)
    public = connector(tmp_path, readers=["public"])
    assert documents(public)["Room"].access == Access.to(["public"])
    with pytest.raises(ValidationError, match="not a reader"):
        connector(tmp_path, owner="ann")
