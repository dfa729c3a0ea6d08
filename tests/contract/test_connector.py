"""What every connector promises, on every connector."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from connectors.connector import (
    Capability,
    Change,
    Check,
    Checkpoint,
    Connector,
    Deletion,
    Unchanged,
    Unreadable,
)
from connectors.document import Access, Document
from connectors.sources.folder import FolderConnector, FolderSettings


@dataclass(frozen=True)
class World:
    """A source with 450 items, of which number 7 cannot be read, and what may happen to it."""

    connect: Callable[[], Connector]
    """A new connector, as a new process makes it."""
    edit: Callable[[int], None]
    remove: Callable[[int], None]


def folder(root: Path) -> World:
    def path(number: int) -> Path:
        return root / f"{number % 7}/項目 {number:03}.md"

    def edit(number: int) -> None:
        path(number).write_text(f"# Item {number}\n\nEdited.")

    for number in range(450):
        path(number).parent.mkdir(parents=True, exist_ok=True)
        path(number).write_text(f"# Item {number}\n\nThe text of item {number}.")
    path(7).write_bytes(b"")
    (root / "access.yaml").write_text(
        'rules:\n  - {match: 3/**, readers: ["group:three"]}\n  - {match: "**", readers: [public]}\n'
    )
    return World(
        connect=lambda: FolderConnector("源", FolderSettings(path=root)),
        edit=edit,
        remove=lambda number: path(number).unlink(),
    )


WORLDS: Mapping[str, Callable[[Path], World]] = {"folder": folder}


@pytest.fixture(params=list(WORLDS))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return WORLDS[request.param](tmp_path)


class Held:
    """What Quarry holds: versions by document id, changed as a pipeline does."""

    def __init__(self) -> None:
        self.versions: dict[str, str] = {}
        self.most_asked = 0

    def known(self, ids: Sequence[str]) -> Mapping[str, str]:
        self.most_asked = max(self.most_asked, len(ids))
        return {one: self.versions[one] for one in ids if one in self.versions}

    def take(self, change: Change) -> None:
        match change:
            case Document():
                self.versions[change.id] = change.version
            case Unchanged():
                self.versions[change.document_id] = change.version
            case Deletion():
                self.versions.pop(change.document_id, None)
            case Unreadable() | Checkpoint():
                pass


def run(world: World, held: Held, since: Checkpoint | None = None) -> list[Change]:
    changes = []
    for change in world.connect().changes(since, held.known):
        held.take(change)
        changes.append(change)
    return changes


def documents(changes: Sequence[Change]) -> list[Document]:
    return [change for change in changes if isinstance(change, Document)]


def test_a_first_run_yields_every_document_once(world: World) -> None:
    found = documents(run(world, Held()))
    assert len({one.id for one in found}) == len(found) == 449


def test_ids_begin_with_the_source_and_are_the_same_every_time(world: World) -> None:
    first, second = (documents(run(world, Held())) for _ in range(2))
    source = world.connect().source
    assert all(one.id.startswith(f"{source}:") and one.source == source for one in first)
    assert [one.id for one in first] == [one.id for one in second]


def test_a_document_is_whole(world: World) -> None:
    for one in documents(run(world, Held())):
        assert one.title.startswith("Item ")
        assert one.sections[0].text.startswith("The text of item ")
        assert one.link
        assert one.media_type
        assert one.access.readers
        assert one.version
        assert one.updated_at is not None
        assert one.updated_at.utcoffset() is not None


def test_one_bad_document_is_named_and_ends_nothing(world: World) -> None:
    changes = run(world, Held())
    (bad,) = [change for change in changes if isinstance(change, Unreadable)]
    assert "007" in bad.item
    assert bad.reason
    assert bad.document_id not in {one.id for one in documents(changes)}


def test_a_run_ends_in_a_checkpoint_and_the_next_yields_no_change(world: World) -> None:
    held = Held()
    last = run(world, held)[-1]
    assert isinstance(last, Checkpoint)
    again = run(world, held, last)
    assert not [one for one in again if not isinstance(one, Checkpoint | Unreadable)]


def test_a_run_resumes_after_any_checkpoint_and_nothing_is_lost(world: World) -> None:
    whole = {one.id: one for one in documents(run(world, Held()))}
    checkpoints = sum(isinstance(change, Checkpoint) for change in run(world, Held()))
    assert checkpoints >= 3
    for stop in range(checkpoints):
        held = Held()
        since, before = _until(world, held, stop)
        # what came after the checkpoint was never saved: only what came before is held
        assert held.versions.keys() == {one.id for one in before}
        after = documents(run(world, held, since))
        assert not {one.id for one in before} & {one.id for one in after}
        assert {one.id: one for one in [*before, *after]} == whole


def _until(world: World, held: Held, stop: int) -> tuple[Checkpoint, list[Document]]:
    """Run up to checkpoint number `stop` and break off."""
    before: list[Document] = []
    for change in world.connect().changes(None, held.known):
        held.take(change)
        if isinstance(change, Document):
            before.append(change)
        if isinstance(change, Checkpoint):
            if stop == 0:
                return change, before
            stop -= 1
    raise AssertionError("there are fewer checkpoints")


def test_only_what_was_edited_is_yielded_again(world: World) -> None:
    held = Held()
    last = run(world, held)[-1]
    assert isinstance(last, Checkpoint)
    world.edit(5)
    world.edit(440)
    changed = documents(run(world, held, last))
    assert {one.title for one in changed} == {"Item 5", "Item 440"}


def test_an_unreadable_document_that_was_mended_is_yielded(world: World) -> None:
    held = Held()
    run(world, held)
    world.edit(7)
    assert [one.title for one in documents(run(world, held))] == ["Item 7"]


def test_the_listing_covers_all_that_a_run_yields(world: World) -> None:
    listed = {one.document_id: one.access for one in world.connect().listing()}
    changes = run(world, Held())
    assert len(listed) == 450
    assert {one.id: one.access for one in documents(changes)}.items() <= listed.items()
    assert {one.document_id for one in changes if isinstance(one, Unreadable)} <= listed.keys()


def test_the_listing_has_a_stable_order_and_the_present_access(world: World) -> None:
    first, second = (list(world.connect().listing()) for _ in range(2))
    assert first == second
    assert {one.access for one in first} == {Access.to(["public"]), Access.to(["group:three"])}


def test_what_was_removed_is_known_from_the_listing_or_a_deletion(world: World) -> None:
    held = Held()
    last = run(world, held)[-1]
    assert isinstance(last, Checkpoint)
    ids = set(held.versions)
    world.remove(5)
    run(world, held, last)
    left = {one.document_id for one in world.connect().listing()}
    (gone,) = (ids - left) | (ids - held.versions.keys())
    assert "005" in gone


def test_what_is_asked_for_by_name_is_read_again_changed_or_not(world: World) -> None:
    held = Held()
    changes = run(world, held)
    bad = next(change for change in changes if isinstance(change, Unreadable))
    first, second = sorted(held.versions)[:2]
    world.remove(int(re.findall(r"\d{3}", second)[-1]))
    again = list(world.connect().again([first, second, bad.document_id]))
    assert again == [
        next(one for one in documents(changes) if one.id == first),
        Deletion(second),
        bad,
    ]


def test_what_can_be_had_is_told_without_a_fault(world: World) -> None:
    assert list(world.connect().check()) == [Check(capability) for capability in Capability]


def test_ids_are_asked_for_in_batches(world: World) -> None:
    held = Held()
    run(world, held)
    assert 1 <= held.most_asked <= 1000


def test_a_checkpoint_survives_being_stored(world: World) -> None:
    for change in run(world, Held()):
        if isinstance(change, Checkpoint):
            assert change.value.encode().decode() == change.value
            assert len(change.value) < os.pathconf("/", "PC_PATH_MAX") * 2
