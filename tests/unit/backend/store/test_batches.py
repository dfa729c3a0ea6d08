"""Batches under leases: who may take one, who may say that it is finished, and what waits for what."""

import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select, update

from backend.store.database import exclusive
from backend.store.documents import batches
from backend.store.documents.document_contents import decode_changes, encode_changes
from backend.store.schema.tables import batches as rows
from backend.store.sync import run_transitions, runs, sources
from backend.store.sync.runs import Process, RunEndedError
from connectors.access import Access
from connectors.connector import Checkpoint, Deletion, Unchanged, Unreadable
from connectors.errors import TemporarilyUnavailableError
from indexing.ingestion.batching import ClaimedBatch
from indexing.ingestion.ledger import BatchFinished, LeaseLostError, Stored
from tests.support.store import Store, document, gone

ME = Process("here", 1, "1")
OTHER = Process("here", 2, "1")


def nobody(process: Process) -> bool:
    del process
    return False


def reading(store: Store, source: str = "desk") -> int:
    """A run whose batches may be taken."""
    run = run_transitions.begin(store.database, source, "incremental", ME, gone)
    runs.enter_stage(store.database, run, "indexing")
    return run


def save(store: Store, run: int, *names: str, reached: str | None = None) -> None:
    changes = [Deletion(name) for name in names]
    batches.save(store.database, run, changes, Checkpoint(reached) if reached else None)


def claim(store: Store, holder: Process = ME, source: str | None = None) -> ClaimedBatch | None:
    return batches.claim(store.database, holder, nobody, source)


def taken(store: Store, holder: Process = ME, source: str | None = None) -> ClaimedBatch:
    held = claim(store, holder, source)
    assert held is not None
    return held


def names(held: ClaimedBatch | None) -> list[str]:
    return [] if held is None else [change.document_id for change in held.changes]  # type: ignore[union-attr]


def finish(store: Store, held: ClaimedBatch, **counts: int) -> None:
    done = BatchFinished(batch=held.number, fence=held.fence, counts=counts, item="leave.pdf")
    store.ledger.save([done])


def expire(store: Store, held: ClaimedBatch) -> None:
    """As if its worker had not been heard of for too long."""
    past = datetime.now(UTC) - timedelta(seconds=1)
    with store.database.writing() as connection:
        connection.execute(update(rows).where(rows.c.id == held.number).values(lease_until=past))


def test_whatever_a_source_reports_is_reported_again_as_it_was() -> None:
    actual = (
        replace(document("desk:a", text="half a \ud800 character"), metadata={"team": ("a", "b")}),
        document("desk:f", access=Access.all_of([["group:hr"], ["external:7:a", "group:b"]])),
        Deletion("desk:b"),
        Unchanged("desk:c", "7"),
        Unreadable(document_id="desk:d", item="d.pdf", reason="it is encrypted", link="file:d"),
        Unreadable(document_id="desk:e", item="e.pdf", reason="it is encrypted", version="7"),
    )
    assert decode_changes(encode_changes(actual)) == actual


def test_a_batch_and_its_checkpoint_are_saved_by_the_run_that_goes_on_alone(store: Store) -> None:
    first = reading(store)
    save(store, first, "desk:a", reached="1")
    second = reading(store)
    with pytest.raises(RunEndedError, match="taken over"):
        save(store, first, "desk:b", reached="2")
    assert sources.find(store.database, "desk").checkpoint == Checkpoint("1")
    assert names(claim(store)) == ["desk:a"]
    save(store, second, "desk:b", reached="2")
    assert sources.find(store.database, "desk").checkpoint == Checkpoint("2")


def test_what_came_of_a_batch_is_counted_by_its_run_once(store: Store) -> None:
    run = reading(store)
    save(store, run, "desk:a")
    save(store, run, "desk:b")
    first, second = taken(store), taken(store)
    finish(store, first, documents=2, chunks=7)
    finish(store, second, documents=1, unreadable=1)
    with pytest.raises(LeaseLostError, match=str(first.number)):
        finish(store, first, documents=2)
    found = runs.find(store.database, run)
    assert found.done == 2
    assert found.counts == {"documents": 3, "chunks": 7, "unreadable": 1}
    assert found.item == "leave.pdf"


def test_who_comes_late_may_say_nothing(store: Store) -> None:
    """Not even what it would have saved in the same transaction."""
    save(store, reading(store), "desk:a")
    late = taken(store, ME)
    expire(store, late)
    quick = taken(store, OTHER)
    assert (quick.number, quick.fence) == (late.number, late.fence + 1)
    assert (late.is_current(), quick.is_current()) == (False, True)
    stored = Stored(document=document("desk:a"), content_hash="h", generation=1, chunks=1)
    lost = BatchFinished(batch=late.number, fence=late.fence, counts={}, item=None)
    with pytest.raises(LeaseLostError):
        store.ledger.save([stored, lost])
    assert store.ledger.count("desk") == 0
    assert batches.renew(store.database, [(late.number, late.fence)]) == set()
    finish(store, quick)


def test_a_lease_that_ran_out_and_was_not_taken_is_still_its_holders(store: Store) -> None:
    save(store, reading(store), "desk:a")
    held = taken(store)
    expire(store, held)
    finish(store, held)
    assert batches.count(store.database, "desk") == 0


def test_what_a_dead_process_held_is_taken_at_once(store: Store) -> None:
    save(store, reading(store), "desk:a")
    taken(store, ME)
    assert claim(store, OTHER) is None
    found = batches.claim(store.database, OTHER, lambda process: process == ME)
    assert names(found) == ["desk:a"]


def test_a_batch_waits_for_all_earlier_ones_with_a_document_of_it(store: Store) -> None:
    run = reading(store)
    save(store, run, "desk:a")
    save(store, run, "desk:b")
    save(store, run, "desk:a", "desk:b")
    save(store, run, "desk:c")
    first, second, fourth = taken(store), taken(store), taken(store)
    assert [names(each) for each in (first, second, fourth)] == [["desk:a"], ["desk:b"], ["desk:c"]]
    assert claim(store) is None
    finish(store, second)
    assert claim(store) is None
    finish(store, first)
    assert names(claim(store)) == ["desk:a", "desk:b"]


def test_sources_take_turns_however_much_one_has(store: Store) -> None:
    desk, web = reading(store, "desk"), reading(store, "web")
    for number in range(6):
        save(store, desk, f"desk:{number}")
    for number in range(2):
        save(store, web, f"web:{number}")
    order = []
    for _ in range(6):
        held = taken(store)
        order.append(held.source)
        finish(store, held)
    assert order[:4] in (["desk", "web"] * 2, ["web", "desk"] * 2)
    assert order[4:] == ["desk", "desk"]


def _save_large(store: Store, run: int, *names: str) -> None:
    """Batches of some 100 kB each: a hundred times what one of `save` counts for."""
    for name in names:
        noise = random.Random(name).randbytes(100_000).hex()
        failed = Unreadable(document_id=name, item=name, reason=noise)
        batches.save(store.database, run, [failed], None)


def _order(store: Store, turns: int) -> list[str]:
    found = []
    for _ in range(turns):
        held = taken(store)
        found.append(held.source)
        finish(store, held)
    return found


def test_a_turn_counts_by_what_is_in_it(store: Store) -> None:
    desk, web = reading(store, "desk"), reading(store, "web")
    _save_large(store, desk, "desk:1", "desk:2")
    for number in range(20):
        save(store, web, f"web:{number}")
    assert _order(store, 22) == ["desk", *["web"] * 20, "desk"]


def test_a_newcomer_is_served_soon_and_catches_up_on_nothing(store: Store) -> None:
    desk = reading(store, "desk")
    _save_large(store, desk, *(f"desk:{number}" for number in range(5)))
    assert _order(store, 3) == ["desk"] * 3
    web = reading(store, "web")
    _save_large(store, web, *(f"web:{number}" for number in range(4)))
    assert _order(store, 6) == ["desk", "web"] * 2 + ["web"] * 2


def test_who_was_alone_for_long_does_not_wait_for_it(store: Store) -> None:
    desk, web = reading(store, "desk"), reading(store, "web")
    _save_large(store, desk, "desk:1", "desk:2", "desk:3")
    assert _order(store, 3) == ["desk"] * 3
    for number in range(9):
        save(store, web, f"web:{number}")
    assert _order(store, 2) == ["web"] * 2
    save(store, desk, "desk:4")
    assert _order(store, 3) == ["web", "desk", "web"]


def _save_much_and_little(store: Store) -> int:
    """The large batch of one source was served, and two of nine small ones of the other; return the first one's run."""
    desk, web = reading(store, "desk"), reading(store, "web")
    _save_large(store, desk, "desk:1")
    for number in range(9):
        save(store, web, f"web:{number}")
    assert _order(store, 3) == ["desk", "web", "web"]
    return desk


def test_who_was_served_much_and_comes_back_waits_for_the_others(store: Store) -> None:
    save(store, _save_much_and_little(store), "desk:2")
    assert _order(store, 8) == ["web"] * 7 + ["desk"]


def test_the_source_with_fewest_batches_in_hand_is_next(store: Store) -> None:
    save(store, _save_much_and_little(store), "desk:2")
    assert [taken(store).source for _ in range(3)] == ["web", "desk", "web"]


@pytest.mark.parametrize(
    "state", ["waiting", "done", "failed", "interrupted", "needs a decision", "decided"]
)
def test_what_was_fetched_is_indexed_though_its_run_does_not_go_on(
    store: Store, state: runs.RunState
) -> None:
    run = reading(store)
    save(store, run, "desk:a")
    run_transitions.close(store.database, run, state)
    assert names(claim(store)) == ["desk:a"]


def test_a_newcomer_takes_turns_with_who_waits_not_with_who_was_served_most(store: Store) -> None:
    _save_much_and_little(store)
    sources.add(store.database, "mail", "folder", {})
    mail = reading(store, "mail")
    for number in range(2):
        save(store, mail, f"mail:{number}")
    assert _order(store, 4) == ["web", "mail"] * 2


def test_nothing_is_taken_of_a_source_that_is_paused_or_at_something_else(store: Store) -> None:
    run = reading(store)
    save(store, run, "desk:a")
    sources.set_paused(store.database, "desk", datetime.now(UTC))
    assert claim(store) is None
    sources.set_paused(store.database, "desk", None)
    run_transitions.begin(store.database, "desk", "reindex", ME, gone)
    assert claim(store) is None
    reading(store)
    assert names(claim(store)) == ["desk:a"]


def test_a_cancelled_runs_batches_are_left_to_the_next_run(store: Store) -> None:
    save(store, reading(store), "desk:a")
    run_transitions.stop(store.database, "desk", "cancelled")
    assert claim(store) is None
    reading(store)
    assert names(claim(store)) == ["desk:a"]


def test_what_cannot_be_indexed_now_waits_and_its_run_says_for_what(store: Store) -> None:
    run = reading(store)
    save(store, run, "desk:a")
    held = taken(store)
    later = datetime.now(UTC) + timedelta(minutes=5)
    batches.postpone(store.database, [(held.number, held.fence)], later, "the index is away")
    assert claim(store) is None
    found = runs.find(store.database, run)
    assert (found.waiting_for, found.next_try) == ("the index is away", later)
    with store.database.reading() as connection:
        assert connection.scalar(select(rows.c.tries)) == 1


def test_a_source_is_still_once_its_batches_are_held_by_none_that_lives(store: Store) -> None:
    save(store, reading(store), "desk:a")
    assert batches.is_idle(store.database, "desk", nobody)
    save(store, reading(store, "web"), "web:a")
    held = taken(store, source="desk")
    save(store, runs.latest(store.database)["desk"].id, "desk:b")
    assert not batches.is_idle(store.database, "desk", nobody)
    assert batches.is_idle(store.database, "web", nobody)
    assert batches.is_idle(store.database, "desk", lambda process: process == ME)
    with pytest.raises(LeaseLostError):
        finish(store, held)


@dataclass
class Batch:
    """What the model of the protocol knows of one."""

    source: str
    documents: frozenset[int]
    fences: list[int] = field(default_factory=list)
    finished: bool = False


class Leases(RuleBasedStateMachine):
    """Three workers that are paused, die, come late; batches of two sources that share documents."""

    store: Store
    fresh = count()

    def __init__(self) -> None:
        super().__init__()
        number = next(self.fresh)
        self.sources = [f"a{number}", f"b{number}"]
        self.runs = {}
        for source in self.sources:
            sources.add(self.store.database, source, "folder", {})
            self.runs[source] = reading(self.store, source)
        self.workers: dict[int, list[ClaimedBatch]] = {1: [], 2: [], 3: []}
        self.dead: set[int] = set()
        self.born = count(4)
        self.batches: dict[int, Batch] = {}

    def teardown(self) -> None:
        for source in self.sources:
            batches.delete_all(self.store.database, source)

    @rule(source=st.integers(0, 1), documents=st.frozensets(st.integers(0, 4), min_size=1))
    def saved(self, source: int, documents: frozenset[int]) -> None:
        name = self.sources[source]
        save(self.store, self.runs[name], *(f"{name}:{each}" for each in sorted(documents)))
        with self.store.database.reading() as connection:
            number = connection.scalars(select(rows.c.id).order_by(rows.c.id.desc())).first()
        assert number is not None
        assert number > max(self.batches, default=0)
        self.batches[number] = Batch(name, documents)

    @rule(choice=st.data())
    def taken(self, choice: st.DataObject) -> None:
        self.take(choice.draw(st.sampled_from(sorted(self.workers))))

    def take(self, worker: int) -> None:
        held = batches.claim(self.store.database, Process("here", worker, "1"), self.is_dead)
        if held is None:
            return
        batch = self.batches[held.number]
        assert not batch.finished
        assert held.fence > max(batch.fences, default=0)
        for number, earlier in self.batches.items():
            if number < held.number and earlier.source == batch.source and not earlier.finished:
                assert batch.documents.isdisjoint(earlier.documents)
        batch.fences.append(held.fence)
        self.workers[worker].append(held)

    @precondition(lambda self: any(self.workers.values()))
    @rule(choice=st.data())
    def said_to_be_finished(self, choice: st.DataObject) -> None:
        """By one who holds it, or by one who once did."""
        worker, held = self.one(choice)
        batch = self.batches[held.number]
        latest = not batch.finished and held.fence == batch.fences[-1]
        assert held.is_current() == latest
        if latest:
            finish(self.store, held)
            batch.finished = True
        else:
            with pytest.raises(LeaseLostError):
                finish(self.store, held)
        self.workers[worker].remove(held)

    @precondition(lambda self: any(self.workers.values()))
    @rule(choice=st.data())
    def paused_for_too_long(self, choice: st.DataObject) -> None:
        """The worker goes on to believe that it holds the batch; what is free by then is taken by another."""
        _, held = self.one(choice)
        if held.is_current():
            expire(self.store, held)
            self.take(choice.draw(st.sampled_from(sorted(self.workers))))

    @precondition(lambda self: any(self.workers.values()))
    @rule(choice=st.data())
    def given_back(self, choice: st.DataObject) -> None:
        worker, held = self.one(choice)
        lease = (held.number, held.fence)
        batches.release(self.store.database, [lease])
        self.workers[worker].remove(held)
        # A lease that was given back is nobody's, until it is taken again under another number.
        with pytest.raises(LeaseLostError):
            finish(self.store, held)

    @precondition(lambda self: len(self.dead) < 5)
    @rule(choice=st.data())
    def dies(self, choice: st.DataObject) -> None:
        """What it held is forgotten by it; another process takes its place."""
        worker = choice.draw(st.sampled_from(sorted(self.workers)))
        del self.workers[worker]
        self.dead.add(worker)
        self.workers[next(self.born)] = []

    @rule(source=st.integers(0, 1))
    def another_run_takes_over(self, source: int) -> None:
        name = self.sources[source]
        before = self.runs[name]
        self.runs[name] = reading(self.store, name)
        with pytest.raises(TemporarilyUnavailableError):
            save(self.store, before, f"{name}:0")

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        with self.store.database.reading() as connection:
            there = set(connection.scalars(select(rows.c.id)))
        assert there == {number for number, each in self.batches.items() if not each.finished}

    def one(self, choice: st.DataObject) -> tuple[int, ClaimedBatch]:
        held = [(worker, each) for worker, some in self.workers.items() for each in some]
        return choice.draw(st.sampled_from(held))

    def is_dead(self, process: Process) -> bool:
        return process.number in self.dead


@pytest.mark.soak("slow")
def test_no_two_workers_ever_finish_one_batch_and_none_that_wakes_late(store: Store) -> None:
    class Protocol(Leases):
        pass

    Protocol.store = store
    run_state_machine_as_test(
        Protocol,
        settings=settings(
            max_examples=20,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_open_batches_are_counted_by_source(store: Store) -> None:
    database = store.database
    assert (batches.count(database, "desk"), batches.counts(database)) == (0, {})
    desk, web = reading(store), reading(store, "web")
    save(store, desk, "a")
    save(store, desk, "b")
    save(store, web, "c")
    assert (batches.count(database, "desk"), batches.count(database, "web")) == (2, 1)
    assert batches.count(database, "unknown") == 0
    assert batches.counts(database) == {"desk": 2, "web": 1}
    assert batches.counts(database, "web") == {"web": 1}


def test_sources_are_ready_while_a_batch_may_be_claimed(store: Store) -> None:
    database = store.database
    desk, web = reading(store), reading(store, "web")
    assert batches.list_ready_sources(database) == []
    for name in ("a", "b"):
        save(store, web, name)
    save(store, desk, "c")
    ready = batches.list_ready_sources(database)
    assert len(ready) == 2
    assert ready == sorted(ready)
    held = taken(store, source="desk")
    assert len(batches.list_ready_sources(database)) == 1
    batches.release(database, {(held.number, held.fence)})
    assert batches.list_ready_sources(database) == ready
    runs.enter_stage(database, desk, "listing")
    assert len(batches.list_ready_sources(database)) == 1


def test_a_lease_that_was_revoked_never_counts_again(store: Store) -> None:
    save(store, reading(store), "a")
    late = taken(store)
    expire(store, late)
    assert batches.is_idle(store.database, "desk", nobody)
    again = taken(store, OTHER)
    assert again.fence > late.fence
    assert not late.is_current()
    assert again.is_current()
    assert batches.renew(store.database, {(late.number, late.fence)}) == set()


def test_only_the_run_of_a_postponed_batch_waits(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random, "uniform", lambda _, high: high)
    desk, web = reading(store), reading(store, "web")
    save(store, desk, "a")
    held = taken(store)
    before = datetime.now(UTC)
    batches.postpone(store.database, {(held.number, held.fence)}, None, "The index is away.")
    after = datetime.now(UTC)
    waiting = runs.find(store.database, desk)
    wait = timedelta(seconds=13)
    assert waiting.waiting_for == "The index is away."
    assert waiting.next_try is not None
    assert before + wait <= waiting.next_try <= after + wait
    assert runs.find(store.database, web).waiting_for is None


def test_a_batch_waits_twice_as_long_after_its_second_try_give_or_take_a_third(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    factors: list[tuple[float, float]] = []

    def longest(low: float, high: float) -> float:
        factors.append((low, high))
        return high

    monkeypatch.setattr(random, "uniform", longest)
    save(store, reading(store), "a")
    for seconds in (13, 26):
        held = taken(store)
        before = datetime.now(UTC)
        batches.postpone(store.database, [(held.number, held.fence)], None, "The index is away.")
        wait = timedelta(seconds=seconds)
        with store.database.writing() as connection:
            until = connection.scalar(select(rows.c.next_try))
            connection.execute(update(rows).values(next_try=None))
        assert until is not None
        assert before + wait <= until <= datetime.now(UTC) + wait
    assert factors == [(0.7, 1.3)] * 2


def test_where_nothing_can_be_claimed_no_writer_is_waited_for(store: Store) -> None:
    desk, web = reading(store), reading(store, "web")
    save(store, web, "a")
    save(store, web, "b")
    taken(store, source="web")
    save(store, desk, "c")
    held = taken(store, source="desk")
    later = datetime.now(UTC) + timedelta(minutes=5)
    batches.postpone(store.database, [(held.number, held.fence)], later, "The index is away.")
    with store.database.writing() as connection:
        exclusive(connection)
        assert claim(store, source="desk") is None


def test_a_batch_that_is_held_is_postponed_beside_one_that_was_lost(store: Store) -> None:
    run = reading(store)
    for name in ("a", "b"):
        save(store, run, name)
    lost, held = taken(store), taken(store)
    batches.release(store.database, [(lost.number, lost.fence)])
    later = datetime.now(UTC) + timedelta(minutes=5)
    both = [(each.number, each.fence) for each in (lost, held)]
    batches.postpone(store.database, both, later, "The index is away.")
    assert not held.is_current()
    assert names(claim(store)) == ["a"]
    assert claim(store) is None


def test_a_run_that_has_ended_waits_for_no_postponed_batch(store: Store) -> None:
    run = reading(store)
    save(store, run, "a")
    held = taken(store)
    run_transitions.close(store.database, run, "failed")
    later = datetime.now(UTC) + timedelta(minutes=5)
    batches.postpone(store.database, [(held.number, held.fence)], later, "The index is away.")
    found = runs.find(store.database, run)
    assert (found.waiting_for, found.next_try) == (None, None)


def test_the_run_of_a_finished_batch_is_found(store: Store) -> None:
    for source in ("desk", "web"):
        run = reading(store, source)
        save(store, run, "a")
        held = taken(store, source=source)
        done = BatchFinished(batch=held.number, fence=held.fence, counts={}, item="a")
        with store.database.reading() as connection:
            assert batches.find_run(connection, [done]) == run
            assert batches.find_run(connection, []) is None
