"""What every connector promises, on every connector.

What a source may be and do is a world of `tests/contract/connector_worlds/`; a test of something
that only some sources can have is collected for these alone.
"""

import gc
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from connectors.access import PUBLIC
from connectors.connector import (
    Capability,
    Change,
    Check,
    Checkpoint,
    Deletion,
    DerivesAccess,
    DocumentCount,
    DocumentListing,
    GroupItem,
    ListsGroups,
    ReaderGroup,
    Unchanged,
    Unreadable,
)
from connectors.document import Document
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from tests.contract.connector_worlds.held import (
    Held,
    documents,
    list_documents,
    list_groups,
    numbers,
    resolve,
    run,
    run_into,
    taking,
)
from tests.contract.connector_worlds.world import (
    ANN,
    BO,
    CY,
    ITEMS,
    UNREADABLE,
    Crowds,
    Expires,
    Fails,
    Garbles,
    Grouped,
    IdOnMove,
    Limits,
    Moves,
    RollsOut,
    Shift,
    Shifts,
    Skews,
    World,
    edited_text,
    number_of,
    text,
    title,
)
from tests.contract.connector_worlds.worlds import WORLDS
from tests.support.memory import count_allocated_bytes
from tests.support.rights import may_read
from tests.support.soak import SLICE, scaled

pytestmark = pytest.mark.deep("connectors")

PAGE_SIZES = (
    "backend.store.documents.pushed_documents._PAGE",
    "connectors.git_repository.file_documents._FILES_PER_CHECKPOINT",
    "connectors.mail.sync._CONVERSATIONS_PER_CHECKPOINT",
    "connectors.mail.sync._IDS_PER_LOOKUP",
    "connectors.sources.confluence.pagination.PAGE_SIZE",
    "connectors.sources.feed.connector._ENTRIES_PER_LOOKUP",
    "connectors.sources.folder.connector._FILES_PER_CHECKPOINT",
    "connectors.sources.github.client.PAGE_SIZE",
    "connectors.sources.imap.mailbox._HEADERS_PER_FETCH",
    "connectors.sources.slack.api_workspace.PAGE_SIZE",
    "connectors.sources.slack.export_workspace._PAGE_SIZE",
    "connectors.sources.website.crawler.BATCH_SIZE",
)
"""What the sources read at once: of 60 items they would ask for one page only."""
REQUESTS_AN_HOUR = scaled(20, 75, "connectors")
"""More than the pages of one second's items take: GitHub's list does not resume within a second."""
FEW_A_REQUEST = {name: 4 for name in PAGE_SIZES if name.endswith(".PAGE_SIZE")} | {
    "connectors.sources.confluence.pagination._OVERLAP": 1
}
"""What makes a listing take several hours of so few requests."""
DAMAGED = scaled(
    ("{", '{"of": "another time"}'), ("", "{", "[]", '{"of": "another time"}'), "connectors"
)
"""Checkpoints that nobody can read: from each, all is read or listed from the start."""
READABLE = [number for number in range(ITEMS) if number != UNREADABLE]
MIDDLE, LATE = ITEMS // 2, ITEMS - 10
"""Items of the second page and of the last."""
MEASURED_EVERY = scaled(1_000, 10_000, "connectors")
FLAT_BLOCKS = scaled(900, 5_000, "connectors")
FLAT_BYTES = 4_000_000
"""How far a crowd may raise the blocks that Python holds, and the bytes of larger allocations. To keep the ids alone takes a block or
more for each. What a world itself notes of requests is in this process too."""
ANSWERED = scaled((1,), (0, 1, 5), "connectors")
"""Requests that go well before trouble begins."""


def every(*powers: type) -> list[type[World]]:
    """The worlds that have all these powers."""
    return [one for one in WORLDS if all(issubclass(one, power) for power in powers)]


def having(*powers: type) -> pytest.MarkDecorator:
    """Collect a test for the worlds that have these powers."""
    return pytest.mark.parametrize(
        "world", every(*powers), ids=lambda one: str(one.name), indirect=True
    )


def each_way(pairs: Sequence[tuple[type[World], str]]) -> pytest.MarkDecorator:
    """Collect a test for each way in which a world can go wrong."""
    ids = [f"{one.name}-{how}" for one, how in pairs]
    return pytest.mark.parametrize(("world", "how"), pairs, ids=ids, indirect=["world"])


GARBLINGS = [
    (one, how)
    for one in WORLDS
    if issubclass(one, Garbles)
    for how in scaled(one.garblings[-2:], one.garblings, "connectors")
]
"""In `make test` those that come nearest to a whole answer, which each world names last."""
SHIFTS = [(one, str(how)) for one in WORLDS if issubclass(one, Shifts) for how in one.shifts]


@pytest.fixture(autouse=True)
def _pages_as_small_as_the_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    if SLICE != "connectors":
        for name in PAGE_SIZES:
            monkeypatch.setattr(name, ITEMS // 3)


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made: World = request.param(tmp_path)
    yield made
    made.close()


@having()
def test_a_first_run_yields_every_document_once(world: World) -> None:
    assert sorted(numbers(run(world.connect(), Held()))) == READABLE


@having()
def test_ids_begin_with_the_source_and_are_the_same_every_time(world: World) -> None:
    first, second = (documents(run(world.connect(), Held())) for _ in range(2))
    source = world.connect().source
    assert all(one.id.startswith(f"{source}:") and one.source == source for one in first)
    assert [one.id for one in first] == [one.id for one in second]


@having()
def test_a_document_is_whole(world: World) -> None:
    for one in documents(run(world.connect(), Held())):
        number = number_of(one.title)
        assert title(number) in one.title
        assert text(number) in _text(one)
        assert one.access == world.readers(number)
        assert one.link
        assert one.media_type
        assert one.version
        assert one.updated_at is not None
        assert one.updated_at.utcoffset() is not None


@having()
def test_one_bad_document_is_named_and_ends_nothing(world: World) -> None:
    held = Held()
    changes = run(world.connect(), held)
    (bad,) = [change for change in changes if isinstance(change, Unreadable)]
    assert number_of(bad.item) == UNREADABLE
    assert bad.reason
    assert bad.document_id not in held.documents


@having()
def test_a_run_ends_in_a_checkpoint_and_the_next_yields_no_change(world: World) -> None:
    held = Held()
    assert isinstance(run(world.connect(), held)[-1], Checkpoint)
    again = run(world.connect(), held)
    assert isinstance(again[-1], Checkpoint)
    assert not [one for one in again if not isinstance(one, Checkpoint | Unreadable)]
    assert not [one for one in again if isinstance(one, Unreadable) and one.version is not None]


@having()
def test_a_run_resumes_after_any_checkpoint_and_nothing_is_lost(world: World) -> None:
    held = Held()
    changes = run(world.connect(), held)
    checkpoints = sum(isinstance(change, Checkpoint) for change in changes)
    assert checkpoints >= 3
    for stop in scaled([0, checkpoints - 1], list(range(checkpoints)), "connectors"):
        resumed = Held()
        before = documents(_until(world, resumed, stop))
        # what came after the checkpoint was never saved: only what came before is held
        after = documents(run(world.connect(), resumed))
        assert not {one.id for one in before} & {one.id for one in after}
        assert {one.id: one for one in [*before, *after]} == held.documents


def _until(world: World, held: Held, stop: int) -> list[Change]:
    """Run up to checkpoint number `stop` and break off."""
    changes: list[Change] = []
    for change in taking(world.connect(), held):
        changes.append(change)
        if isinstance(change, Checkpoint):
            if stop == 0:
                return changes
            stop -= 1
    raise AssertionError("there are fewer checkpoints")


@having()
def test_how_many_documents_there_are_is_said_before_them_and_right(world: World) -> None:
    changes = run(world.connect(), Held())
    counts = [one for one in changes if isinstance(one, DocumentCount)]
    assert counts in ([], [DocumentCount(len(list(list_documents(world.connect()))))])
    assert counts == [one for one in changes[:1] if isinstance(one, DocumentCount)]


@having()
def test_a_checkpoint_that_cannot_be_read_begins_from_the_start(world: World) -> None:
    for value in DAMAGED:
        held = Held()
        held.since = Checkpoint(value)
        run(world.connect(), held)
        assert held.numbers == READABLE


@having()
def test_only_what_was_edited_is_yielded_again(world: World) -> None:
    held = Held()
    run(world.connect(), held)
    world.edit(5)
    world.edit(LATE)
    changed = {number_of(one.title): _text(one) for one in documents(run(world.connect(), held))}
    assert changed.keys() == {5, LATE}
    assert all(edited_text(number) in said for number, said in changed.items())


@having()
def test_what_is_edited_while_a_run_is_broken_off_is_not_lost(world: World) -> None:
    held = Held()
    _until(world, held, 0)
    for number in (5, MIDDLE, LATE):
        world.edit(number)
    run(world.connect(), held)
    run(world.connect(), held)
    actual = {number_of(one.title): _text(one) for one in held.documents.values()}
    assert held.numbers == READABLE
    assert all(edited_text(number) in actual[number] for number in (5, MIDDLE, LATE))


@having()
def test_an_unreadable_document_that_was_mended_is_yielded(world: World) -> None:
    held = Held()
    run(world.connect(), held)
    world.edit(UNREADABLE)
    assert numbers(run(world.connect(), held)) == [UNREADABLE]


@having()
def test_the_listing_covers_all_that_a_run_yields(world: World) -> None:
    listed = {one.document_id: one.access for one in list_documents(world.connect())}
    held = Held()
    run(world.connect(), held)
    assert len(listed) == ITEMS
    assert {one.id: one.access for one in held.documents.values()}.items() <= listed.items()
    assert held.unreadable.keys() <= listed.keys()


@having()
def test_the_listing_has_a_stable_order_and_the_present_access(world: World) -> None:
    first, second = (list(list_documents(world.connect())) for _ in range(2))
    assert first == second
    assert {one.access for one in first} == {world.readers(number) for number in range(ITEMS)}


@having()
def test_a_listing_resumes_at_any_checkpoint_and_lists_the_rest(world: World) -> None:
    items = list(world.connect().listing(None))
    whole = {one for one in items if isinstance(one, DocumentListing)}
    places = [at for at, one in enumerate(items) if isinstance(one, Checkpoint)]
    for at in scaled([*places[:1], *places[-2:]], places, "connectors"):
        before = {one for one in items[:at] if isinstance(one, DocumentListing)}
        reached = items[at]
        assert isinstance(reached, Checkpoint)
        rest = list_documents(world.connect(), Checkpoint(reached.value.encode().decode()))
        assert before | set(rest) == whole


@having()
def test_a_listing_checkpoint_that_cannot_be_read_begins_from_the_start(world: World) -> None:
    whole = list(list_documents(world.connect()))
    checkpoints = [one for one in run(world.connect(), Held()) if isinstance(one, Checkpoint)]
    for value in (*DAMAGED, checkpoints[0].value):
        assert list(list_documents(world.connect(), Checkpoint(value))) == whole


@having(Limits)
def test_under_a_budget_of_requests_a_listing_comes_to_its_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock of the test's: an hour begins when the requests of the one before are used up."""
    assert isinstance(world, Limits)
    for name, value in FEW_A_REQUEST.items():
        monkeypatch.setattr(name, value)
    whole = set(list_documents(world.connect()))
    found: set[DocumentListing] = set()
    reached, hours = None, 0
    while True:
        world.limit(REQUESTS_AN_HOUR)
        hours += 1
        assert hours <= ITEMS, "each hour must come further"
        try:
            for item in world.connect().listing(reached):
                match item:
                    case DocumentListing():
                        found.add(item)
                    case Checkpoint():
                        reached = item
        except TemporarilyUnavailableError:
            continue
        break
    assert found == whole
    assert (hours > 1) == (reached is not None)


@having(Grouped)
def test_groups_admit_those_who_may_read_an_item(world: World) -> None:
    _check_people(world)


@having(Grouped)
def test_who_joins_or_leaves_a_group_changes_no_document(world: World) -> None:
    assert isinstance(world, Grouped)
    listed = list(list_documents(world.connect()))
    world.join()
    assert all(CY in world.people(one) for one in range(ITEMS) if ANN in world.people(one))
    _check_people(world)
    world.leave()
    assert not any(ANN in world.people(number) for number in range(ITEMS))
    _check_people(world)
    assert list(list_documents(world.connect())) == listed


def _check_people(world: World) -> None:
    assert isinstance(world, Grouped)
    groups = list_groups(world.connect())
    assert len({one.token for one in groups}) == len(groups)
    assert all(one.name for one in groups)
    for asker in (ANN, BO, CY, "user:dan@example.com"):
        readers = resolve(groups, asker)
        for number in range(ITEMS):
            is_admitted = not world.people(number).isdisjoint({asker, PUBLIC})
            assert may_read(readers, world.readers(number)) == is_admitted


@having(Grouped)
def test_ids_say_who_may_read_where_a_source_says_so(world: World) -> None:
    connector = world.connect()
    if isinstance(connector, DerivesAccess):
        for one in list_documents(connector):
            assert connector.derive_access(one.document_id) == one.access


@having(Grouped)
def test_a_listing_of_groups_resumes_at_any_checkpoint_and_lists_the_rest(world: World) -> None:
    items = _list_groups(world, None)
    whole = list_groups(world.connect())
    assert whole == list_groups(world.connect())
    for at, reached in enumerate(items):
        if isinstance(reached, Checkpoint):
            rest = _list_groups(world, Checkpoint(reached.value.encode().decode()))
            together = [one for one in [*items[:at], *rest] if isinstance(one, ReaderGroup)]
            assert {one.token: one for one in together} == {one.token: one for one in whole}
    for value in DAMAGED:
        assert _list_groups(world, Checkpoint(value)) == items


def _list_groups(world: World, since: Checkpoint | None) -> list[GroupItem]:
    connector = world.connect()
    assert isinstance(connector, ListsGroups)
    return list(connector.groups(since))


@having(Grouped, Limits)
def test_under_a_budget_of_requests_a_listing_of_groups_comes_to_its_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(world, Limits)
    for name, value in FEW_A_REQUEST.items():
        monkeypatch.setattr(name, value)
    whole = set(list_groups(world.connect()))
    found: set[ReaderGroup] = set()
    reached: Checkpoint | None = None
    for _ in range(ITEMS):
        world.limit(REQUESTS_AN_HOUR)
        connector = world.connect()
        assert isinstance(connector, ListsGroups)
        try:
            for item in connector.groups(reached):
                match item:
                    case ReaderGroup():
                        found.add(item)
                    case Checkpoint():
                        reached = item
        except TemporarilyUnavailableError:
            continue
        break
    assert found == whole


@pytest.mark.parametrize("answered", ANSWERED)
@each_way([pair for pair in GARBLINGS if issubclass(pair[0], Grouped)])
def test_malformed_answers_are_never_taken_for_fewer_members(
    world: World, how: str, answered: int
) -> None:
    assert isinstance(world, Garbles)
    whole = list_groups(world.connect())
    world.garble(how, answered)
    with suppress(TemporarilyUnavailableError, ActionRequiredError):
        assert list_groups(world.connect()) == whole


@having()
def test_what_was_removed_is_known_from_the_listing_or_a_deletion(world: World) -> None:
    held = Held()
    run(world.connect(), held)
    world.remove(5)
    run(world.connect(), held)
    held.prune(list_documents(world.connect()))
    assert held.numbers == [number for number in READABLE if number != 5]


@having()
def test_what_is_asked_for_by_name_is_read_again_changed_or_not(world: World) -> None:
    held = Held()
    run(world.connect(), held)
    (bad,) = held.unreadable.values()
    first, second = sorted(held.documents)[:2]
    world.remove(number_of(held.documents[second].title))
    again = {_id(one): one for one in world.connect().refetch([first, second, bad.document_id])}
    gone = again.pop(second)
    assert again == {first: held.documents[first], bad.document_id: bad}
    if isinstance(world, RollsOut):
        # It cannot be read again, now or later, and what is held of it stays.
        assert isinstance(gone, Unreadable)
        assert gone.version is not None
    else:
        assert gone == Deletion(second)


@having()
def test_what_can_be_had_is_reported_without_a_fault(world: World) -> None:
    assert list(world.connect().check()) == [Check(capability) for capability in Capability]


@having()
def test_ids_are_asked_for_in_batches(world: World) -> None:
    held = Held()
    run(world.connect(), held)
    assert held.most_asked <= 1000


@having()
def test_a_checkpoint_survives_being_stored(world: World) -> None:
    for change in run(world.connect(), Held()):
        if isinstance(change, Checkpoint):
            assert change.value.encode().decode() == change.value
            assert len(change.value) < os.pathconf("/", "PC_PATH_MAX") * 2


@having(Moves)
def test_what_was_moved_is_held_once(world: World) -> None:
    assert isinstance(world, Moves)
    held = Held()
    run(world.connect(), held)
    before = {number_of(one.title): one.id for one in held.documents.values()}
    world.move(12)
    changed = numbers(run(world.connect(), held))
    held.prune(list_documents(world.connect()))
    after = {number_of(one.title): one.id for one in held.documents.values()}
    assert set(changed) <= {12}
    assert held.numbers == READABLE
    assert (after[12] == before[12]) == (world.id_on_move is IdOnMove.KEPT)
    assert {**after, 12: ""} == {**before, 12: ""}


@having(Fails)
def test_an_item_that_fails_ends_nothing_and_is_read_once_it_can_be(world: World) -> None:
    assert isinstance(world, Fails)
    world.fail(12)
    held = Held()
    run(world.connect(), held)
    names = {number_of(one.item): one.document_id for one in held.unreadable.values()}
    assert names.keys() == {UNREADABLE, 12}
    assert held.numbers == [number for number in READABLE if number != 12]
    assert names[12] in {one.document_id for one in list_documents(world.connect())}
    world.heal(12)
    assert numbers(world.connect().refetch([names[12]])) == [12]


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(hours=-1)], ids=str)
@having(Skews)
def test_a_clock_that_goes_wrong_hides_no_edit(world: World, ahead: timedelta) -> None:
    assert isinstance(world, Skews)
    world.skew(ahead)
    held = Held()
    run(world.connect(), held)
    for number in (5, 6):
        world.edit(number)
        assert numbers(run(world.connect(), held)) == [number]


@having(Skews)
def test_an_edit_that_is_stamped_a_little_too_early_is_found(world: World) -> None:
    assert isinstance(world, Skews)
    held = Held()
    run(world.connect(), held)
    world.edit(6)
    run(world.connect(), held)
    world.skew(timedelta(minutes=-2))
    world.edit(5)
    assert numbers(run(world.connect(), held)) == [5]


@having(Limits)
def test_a_rate_limit_is_waited_out_as_the_service_says(world: World) -> None:
    assert isinstance(world, Limits)
    held = Held()
    run(world.connect(), held)
    world.limit(0)
    for ask in _every_question(world, [next(iter(held.documents))]):
        with pytest.raises(TemporarilyUnavailableError) as caught:
            ask()
        assert abs(caught.value.retry_after - world.wait) <= 0.1 * world.wait
        assert str(caught.value)
    assert all(one.fault for one in world.connect().check())


@pytest.mark.parametrize("answered", ANSWERED)
@having(Limits)
def test_nothing_is_lost_by_a_rate_limit(world: World, answered: int) -> None:
    assert isinstance(world, Limits)
    held = Held()
    world.limit(answered)
    assert isinstance(run_into(world.connect(), held), TemporarilyUnavailableError | None)
    world.relent()
    run(world.connect(), held)
    assert held.numbers == READABLE


@having(Expires)
def test_an_expired_credential_is_reported_with_what_to_do(world: World) -> None:
    assert isinstance(world, Expires)
    held = Held()
    run(world.connect(), held)
    world.expire(0)
    for ask in _every_question(world, [next(iter(held.documents))]):
        with pytest.raises(ActionRequiredError) as caught:
            ask()
        assert re.search(world.mending, str(caught.value))
    faults = [one.fault or "" for one in world.connect().check()]
    assert all(re.search(world.mending, fault) for fault in faults)


@pytest.mark.parametrize("answered", ANSWERED)
@having(Expires)
def test_nothing_is_lost_by_a_credential_that_expires(world: World, answered: int) -> None:
    assert isinstance(world, Expires)
    held = Held()
    world.expire(answered)
    assert isinstance(run_into(world.connect(), held), ActionRequiredError | None)
    world.renew()
    run(world.connect(), held)
    assert held.numbers == READABLE


@pytest.mark.parametrize("answered", ANSWERED)
@each_way(GARBLINGS)
def test_malformed_answers_lose_and_delete_nothing(world: World, how: str, answered: int) -> None:
    assert isinstance(world, Garbles)
    held = Held()
    world.garble(how, answered)
    run_into(world.connect(), held)
    world.mend()
    run(world.connect(), held)
    # what could not be read is tried again by its name
    for change in world.connect().refetch(list(held.unreadable)):
        held.take(change)
    assert held.numbers == READABLE


@pytest.mark.parametrize("answered", ANSWERED)
@each_way(GARBLINGS)
def test_malformed_answers_are_never_taken_for_fewer_items(
    world: World, how: str, answered: int
) -> None:
    assert isinstance(world, Garbles)
    held = Held()
    run(world.connect(), held)
    world.garble(how, answered)
    run_into(world.connect(), held)
    assert held.numbers == READABLE
    world.mend()
    world.garble(how, answered)
    with suppress(TemporarilyUnavailableError, ActionRequiredError):
        held.prune(list_documents(world.connect()))
    assert held.numbers == READABLE


@each_way(SHIFTS)
def test_pages_that_move_meanwhile_lose_nothing(world: World, how: str) -> None:
    assert isinstance(world, Shifts)
    besides = world.shift(Shift(how))
    held = Held()
    run(world.connect(), held)
    assert _without(held.numbers, besides) == _without(READABLE, besides)


@each_way(SHIFTS)
def test_a_listing_whose_pages_move_meanwhile_is_whole(world: World, how: str) -> None:
    assert isinstance(world, Shifts)
    held = Held()
    run(world.connect(), held)
    besides = world.shift(Shift(how))
    held.prune(list_documents(world.connect()))
    assert _without(held.numbers, besides) == _without(READABLE, besides)


@having(Crowds)
def test_a_crowd_of_items_passes_through_flat_memory(
    world: World, pytestconfig: pytest.Config
) -> None:
    assert isinstance(world, Crowds)
    crowd = pytestconfig.getoption("crowd")
    connector = world.crowd(crowd)
    assert _passed(list_documents(connector)) == crowd
    changes = connector.changes(None, Held().known)
    assert _passed(one for one in changes if isinstance(one, Document)) == crowd


def _passed(items: Iterable[object]) -> int:
    """How many there are; memory stays as it was after the first thousand, which load the readers."""
    count, blocks, size = 0, 0, 0
    for count, _ in enumerate(items, 1):
        if count == 1000:
            blocks, size = _measure_memory()
        elif count % MEASURED_EVERY == 0:
            blocks_now, size_now = _measure_memory()
            assert blocks_now - blocks < FLAT_BLOCKS
            assert size_now - size < FLAT_BYTES
    return count


def _measure_memory() -> tuple[int, int]:
    """Return the blocks that Python holds and the bytes of larger allocations, without what is only to be collected."""
    gc.collect()
    return sys.getallocatedblocks(), count_allocated_bytes()


def _every_question(world: World, ids: Sequence[str]) -> list[Callable[[], object]]:
    """All that is asked of a source, each of a new connector."""
    return [
        lambda: list(world.connect().changes(None, Held().known)),
        lambda: list(list_documents(world.connect())),
        lambda: list(world.connect().refetch(ids)),
        *([lambda: list_groups(world.connect())] if isinstance(world, Grouped) else []),
    ]


def _text(document: Document) -> str:
    return "\n".join(section.text for section in document.sections)


def _id(change: Change) -> str:
    match change:
        case Document():
            return change.id
        case Deletion() | Unreadable() | Unchanged():
            return change.document_id
        case Checkpoint():
            raise AssertionError("nothing to resume")
        case DocumentCount():
            raise AssertionError("it names no document")


def _without(numbers: Sequence[int], besides: frozenset[int]) -> list[int]:
    return [number for number in numbers if number not in besides]
