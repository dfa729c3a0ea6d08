"""Research runs in the database: whose they are, which process has them, and what is accepted of it."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from backend.access.roles import Role
from backend.store.chat import conversations, projects
from backend.store.chat.conversations import ListPosition
from backend.store.database import Database, open_database
from backend.store.owner import ConversationOwner
from backend.store.research import research_leases, research_runs
from backend.store.research.research_leases import (
    LEASE,
    Checkpoint,
    ClaimedResearch,
    ClaimLimits,
    EventPortion,
    ResearchClaim,
    ResearchProgress,
    ResearchSignal,
)
from backend.store.research.research_runs import NewResearch, PersonChange, ResearchState
from backend.store.sync.runs import Process
from connectors.errors import ConflictError, NotFoundError
from tests.support.accounts import add_person
from tests.support.conversations import OWNER, begin

NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)
HERE, THERE = Process("here", 1, "1"), Process("there", 2, "2")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


def _person(database: Database, name: str) -> ConversationOwner:
    return ConversationOwner(add_person(database, f"{name}@example.com", Role.ADMIN).id)


def _live(process: Process) -> bool:
    del process
    return False


LIMITS = ClaimLimits(at_once=2, is_dead=_live)


def _add(
    database: Database,
    owner: ConversationOwner = OWNER,
    minute: int = 0,
    *,
    conversation_id: str | None = None,
    project_id: str | None = None,
) -> str:
    new = NewResearch(
        owner=owner,
        acting_as=("public",),
        conversation_id=conversation_id,
        project_id=project_id,
        question="How long is leave?",
        confirms_plan=True,
        record="{}",
        history_document_ids=["wiki:a"],
    )
    return research_runs.add(database, new, NOW + timedelta(minutes=minute))


def _claim(database: Database, process: Process = HERE, at: datetime = NOW) -> ClaimedResearch:
    claimed = research_leases.claim_next(database, process, LIMITS, at)
    assert claimed
    return claimed


def _portion(first: int, *names: str) -> EventPortion:
    last = first + len(names) - 1
    events = ",".join(f'[{number},"{name}",{{}}]' for number, name in enumerate(names, first))
    return EventPortion(first, last, f"[{events}]")


def _store(
    database: Database, claim: ResearchClaim, progress: ResearchProgress, at: datetime = NOW
) -> ResearchSignal:
    return research_leases.store(database, claim, progress, at)


def _checkpoint(state: ResearchState | None = None, record: str = '{"a":1}') -> ResearchProgress:
    made = Checkpoint(record=record, tasks=3, tasks_done=1, has_report=False, state=state)
    return ResearchProgress(checkpoint=made)


def _state(database: Database, run_id: str, owner: ConversationOwner = OWNER) -> str:
    return research_runs.get_own(database, owner, run_id).run.state


def test_a_run_is_found_by_its_owner_alone(database: Database) -> None:
    ann, bob = (_person(database, name) for name in ("ann", "bob"))
    run_id = _add(database, ann)
    found = research_runs.get(database, ann, run_id)
    assert (found.run.question, found.run.state, found.record) == (
        "How long is leave?",
        "waiting",
        "{}",
    )
    for other in (bob, OWNER):
        for look in (research_runs.get, research_runs.get_own):
            with pytest.raises(NotFoundError):
                look(database, other, run_id)
        with pytest.raises(NotFoundError):
            research_runs.follow(database, other, run_id, 0)
        with pytest.raises(NotFoundError):
            research_runs.stop(database, other, run_id, lambda _: "[]", NOW)
        with pytest.raises(NotFoundError):
            research_runs.remove(database, other, run_id)
        assert research_runs.list_page(database, other, None, None, 10) == []


def test_members_of_a_project_see_what_its_members_research_there(database: Database) -> None:
    ann, bob, eve = (_person(database, name) for name in ("ann", "bob", "eve"))
    project = projects.add(database, ann, "Depot", "", NOW)
    projects.add_member(database, project, "bob@example.com")
    in_project = _add(database, bob, project_id=project)
    conversation = begin(database, owner=bob).answer.conversation_id
    in_conversation = _add(database, bob, conversation_id=conversation)
    assert research_runs.get(database, ann, in_project).run.project_id == project
    with pytest.raises(NotFoundError):
        research_runs.get(database, eve, in_project)
    with pytest.raises(NotFoundError):
        research_runs.get(database, ann, in_conversation)
    with pytest.raises(NotFoundError):
        research_runs.get_own(database, ann, in_project)
    listed = research_runs.list_page(database, ann, project, None, 10)
    assert [one.id for one in listed] == [in_project]
    assert bob.person_id is not None
    projects.remove_person(database, project, bob.person_id)
    with pytest.raises(NotFoundError):
        research_runs.get(database, ann, in_project)
    with pytest.raises(NotFoundError):
        _add(database, bob, project_id=project)


def test_a_run_goes_with_its_conversation_and_stays_without_its_project(database: Database) -> None:
    project = projects.add(database, OWNER, "Depot", "", NOW)
    run_id = _add(database, project_id=project)
    conversation = begin(database).answer.conversation_id
    in_conversation = _add(database, conversation_id=conversation)
    projects.remove(database, project)
    assert research_runs.get(database, OWNER, run_id).run.project_id is None
    conversations.remove(database, OWNER, conversation)
    with pytest.raises(NotFoundError):
        research_runs.get(database, OWNER, in_conversation)


def test_runs_are_listed_page_by_page_without_a_gap(database: Database) -> None:
    ids = [_add(database, minute=minute // 2) for minute in range(7)]
    listed: list[str] = []
    position: ListPosition | None = None
    while page := research_runs.list_page(database, OWNER, None, position, 3):
        listed += [one.id for one in page]
        position = ListPosition(page[-1].updated_at, page[-1].id)
    assert sorted(listed) == sorted(ids)
    assert len(listed) == len(ids)


def test_one_process_has_a_run_and_another_takes_it_over_when_its_lease_ends(
    database: Database,
) -> None:
    run_id = _add(database)
    first = _claim(database)
    assert (first.run.id, first.is_taken_over) == (run_id, False)
    assert research_leases.claim_next(database, THERE, LIMITS, NOW + LEASE / 2) is None
    assert _store(database, first.claim, _checkpoint()) is ResearchSignal.RUNNING
    second = _claim(database, THERE, NOW + LEASE * 2)
    assert (second.run.id, second.is_taken_over, second.record) == (run_id, True, '{"a":1}')
    late = _checkpoint("done", '{"late":1}')
    assert _store(database, first.claim, late) is ResearchSignal.LOST
    assert research_runs.get(database, OWNER, run_id).record == '{"a":1}'
    assert _store(database, second.claim, _checkpoint("done")) is ResearchSignal.RUNNING
    assert _state(database, run_id) == "done"
    assert research_leases.claim_next(database, HERE, LIMITS, NOW + LEASE * 9) is None


def test_the_run_of_a_process_that_has_died_is_taken_over_at_once(database: Database) -> None:
    _add(database)
    _claim(database)
    dead = ClaimLimits(at_once=2, is_dead=lambda process: process == HERE)
    claimed = research_leases.claim_next(database, THERE, dead, NOW)
    assert claimed
    assert claimed.claim.fence == 2


def test_a_lease_is_renewed_with_everything_that_is_stored(database: Database) -> None:
    _add(database)
    claimed = _claim(database)
    for step in range(1, 5):
        at = NOW + LEASE * 0.9 * step
        assert _store(database, claimed.claim, ResearchProgress(), at) is ResearchSignal.RUNNING
        assert research_leases.claim_next(database, THERE, LIMITS, at) is None


def test_events_come_behind_any_number_and_once(database: Database) -> None:
    run_id = _add(database)
    claimed = _claim(database)
    _store(database, claimed.claim, ResearchProgress(portion=_portion(1, "plan")))
    _store(database, claimed.claim, ResearchProgress(portion=_portion(1, "plan", "task")))
    _store(database, claimed.claim, ResearchProgress(portion=_portion(3, "done")))
    for after, portions in ((0, 2), (1, 2), (2, 1), (3, 0)):
        found = research_runs.follow(database, OWNER, run_id, after)
        assert len(found.payloads) == portions
    assert research_runs.get(database, OWNER, run_id).run.last_event == 3


def test_an_event_and_the_checkpoint_after_it_are_stored_together_or_not_at_all(
    database: Database,
) -> None:
    run_id = _add(database)
    claimed = _claim(database)
    lost = ResearchClaim(run_id, claimed.claim.fence + 1)
    progress = ResearchProgress(
        portion=_portion(1, "task_done"),
        document_ids=["wiki:b"],
        checkpoint=_checkpoint().checkpoint,
    )
    assert _store(database, lost, progress) is ResearchSignal.LOST
    found = research_runs.follow(database, OWNER, run_id, 0)
    assert (found.payloads, found.document_ids) == ((), ())
    assert _store(database, claimed.claim, progress) is ResearchSignal.RUNNING
    found = research_runs.follow(database, OWNER, run_id, 0)
    assert (len(found.payloads), found.document_ids) == (1, ("wiki:b",))
    assert found.history_document_ids == ("wiki:a",)
    assert research_runs.get(database, OWNER, run_id).run.tasks_done == 1


def test_people_take_turns_and_nobody_takes_all_places(database: Database) -> None:
    ann, bob, eve = (_person(database, name) for name in ("ann", "bob", "eve"))
    own = [_add(database, ann, minute) for minute in range(3)]
    (bobs,) = [_add(database, bob, 4)]
    (eves,) = [_add(database, eve, 5)]
    places = [research_leases.find_place(database, one, _live, NOW) for one in (*own, bobs, eves)]
    assert places == [1, 4, 5, 2, 3]
    first, second = _claim(database), _claim(database)
    assert (first.run.id, second.run.id) == (own[0], bobs)
    assert research_leases.claim_next(database, HERE, LIMITS, NOW) is None
    assert research_leases.is_awaited(database, ann, LIMITS, NOW)
    _store(database, first.claim, _checkpoint("waiting"))
    assert _claim(database, at=NOW + timedelta(seconds=1)).run.id == eves
    assert research_leases.find_place(database, bobs, _live, NOW) is None


def test_one_persons_runs_leave_a_place_free(database: Database) -> None:
    for minute in range(3):
        _add(database, minute=minute)
    limits = ClaimLimits(at_once=3, is_dead=_live)
    claims = [research_leases.claim_next(database, HERE, limits, NOW) for _ in range(3)]
    assert [one is not None for one in claims] == [True, True, False]
    bobs = _add(database, _person(database, "bob"))
    claimed = research_leases.claim_next(database, HERE, limits, NOW)
    assert claimed
    assert claimed.run.id == bobs


@pytest.mark.parametrize("state", ["clarifying", "planned"])
def test_a_run_that_waits_for_its_person_goes_on_when_they_say(
    database: Database, state: ResearchState
) -> None:
    run_id = _add(database)
    _store(database, _claim(database).claim, _checkpoint(state))
    assert research_leases.claim_next(database, HERE, LIMITS, NOW + LEASE * 5) is None
    change = PersonChange(state, '{"b":2}', 2)
    research_runs.change_record(database, OWNER, run_id, change, NOW)
    assert _state(database, run_id) == state
    research_runs.queue(database, OWNER, run_id, change, NOW)
    with pytest.raises(ConflictError):
        research_runs.queue(database, OWNER, run_id, change, NOW)
    claimed = _claim(database, THERE)
    assert (claimed.record, claimed.run.tasks) == ('{"b":2}', 2)


def _end(number: int) -> str:
    return f'[[{number},"stopped",{{}}]]'


def test_what_nobody_works_on_is_stopped_at_once(database: Database) -> None:
    run_id = _add(database)
    research_runs.stop(database, OWNER, run_id, _end, NOW)
    found = research_runs.follow(database, OWNER, run_id, 0)
    assert (found.state, found.payloads) == ("stopped", (_end(1),))
    assert research_leases.claim_next(database, HERE, LIMITS, NOW) is None
    research_runs.stop(database, OWNER, run_id, _end, NOW)
    assert len(research_runs.follow(database, OWNER, run_id, 0).payloads) == 1


def test_what_has_found_something_is_stopped_by_a_process_that_writes_it(
    database: Database,
) -> None:
    run_id = _add(database)
    first = _claim(database)
    research_runs.stop(database, OWNER, run_id, _end, NOW)
    assert _store(database, first.claim, ResearchProgress()) is ResearchSignal.STOPPING
    # It gives its place to another run in the same moment: the stop is not forgotten.
    _store(database, first.claim, _checkpoint("waiting"))
    assert _state(database, run_id) == "stopping"
    others = [_add(database, minute=1), _add(database, minute=2)]
    # A full house does not keep a stop waiting.
    full = ClaimLimits(at_once=0, is_dead=_live)
    second = research_leases.claim_next(database, THERE, full, NOW)
    assert second
    assert (second.run.id, second.run.state) == (run_id, "stopping")
    assert research_leases.claim_next(database, THERE, full, NOW) is None
    assert [_state(database, one) for one in others] == ["waiting", "waiting"]


def test_a_run_that_is_removed_is_lost_to_its_process(database: Database) -> None:
    run_id = _add(database)
    claimed = _claim(database)
    _store(database, claimed.claim, ResearchProgress(portion=_portion(1, "plan")))
    research_runs.remove(database, OWNER, run_id)
    assert _store(database, claimed.claim, ResearchProgress()) is ResearchSignal.LOST
    with pytest.raises(NotFoundError):
        research_runs.follow(database, OWNER, run_id, 0)


def test_the_owner_has_not_seen_an_end_until_they_look(database: Database) -> None:
    run_id = _add(database)
    research_runs.mark_opened(database, OWNER, run_id, NOW)
    assert research_runs.get(database, OWNER, run_id).run.seen_at is None
    assert research_runs.count_open(database, OWNER) == 1
    _store(database, _claim(database).claim, _checkpoint("done"))
    assert research_runs.count_open(database, OWNER) == 0
    research_runs.mark_opened(database, OWNER, run_id, NOW)
    assert research_runs.get(database, OWNER, run_id).run.seen_at == NOW


def test_events_are_forgotten_a_day_after_the_end_and_the_run_is_not(database: Database) -> None:
    run_id = _add(database)
    claimed = _claim(database)
    done = ResearchProgress(portion=_portion(1, "done"), checkpoint=_checkpoint("done").checkpoint)
    _store(database, claimed.claim, done, NOW - research_runs.EVENTS_KEPT)
    assert research_runs.follow(database, OWNER, run_id, 0).payloads
    _add(database, minute=1)
    assert research_runs.follow(database, OWNER, run_id, 0).payloads == ()
    assert research_runs.get(database, OWNER, run_id).record == '{"a":1}'


@pytest.mark.parametrize("run_id", ["missing", "with\0nul", "\ud800"])
def test_an_id_of_nothing_names_nothing(database: Database, run_id: str) -> None:
    for look in (research_runs.get, research_runs.get_own, research_runs.remove):
        with pytest.raises(NotFoundError):
            look(database, OWNER, run_id)
