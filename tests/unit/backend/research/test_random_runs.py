"""Runs in which anything may fail at any moment, as a seed decides: a report that holds together, or a sentence why not."""

import random
from collections.abc import Callable

import pytest

from backend.research.events import (
    ReportChecked,
    ReportPiece,
    ResearchDone,
    ResearchEvent,
    ResearchFailed,
)
from backend.research.record.budget import ResearchBudget
from backend.research.record.research_record import ResearchRecord
from connectors.access import Readers
from tests.support.research_world import (
    ANN,
    QUESTION,
    ResearchWorld,
    check_counts,
    check_numbering,
    name_prompt,
    research_world,
)
from tests.support.scripted_model import HangUp, Raw, Refuse, Reply, Request, Say
from tests.support.services import serving
from tests.support.soak import scaled

SECRET = "40 EUR"
SHOWN = (ReportChecked, ReportPiece, ResearchDone)
"""From here on the report is shown: rights were read right before."""
FAULTS: tuple[Reply, ...] = (
    Refuse(500),
    Refuse(429),
    HangUp(),
    Raw(b"{{{"),
    Say(""),
    Say("Perhaps [1] [2] [99]."),
    Say('{"action": "search", "queries": ["pump", "EUR"]}'),
    Say('{"action": "answer", "answer": "The Aster pump costs 7 EUR [1]."}'),
    Say('{"tasks": ["Why?", "How?"]}'),
    Say(
        '{"contradictions": [{"about": "x", "statements": [{"source": 1, "says": "a"}, {"source": 2, "says": "b"}]}]}'
    ),
)


def disturb(world: ResearchWorld, chance: random.Random) -> Callable[[Request], Reply]:
    share = chance.choice([0.0, 0.2, 0.5])

    def reply(request: Request) -> Reply:
        if chance.random() < share and name_prompt(request) != "other":
            return chance.choice(FAULTS)
        return world.model(request)

    return reply


def change_rights(world: ResearchWorld, chance: random.Random) -> Callable[[ResearchEvent], None]:
    """Stop, or withdraw a right for good, at some event before the report is shown."""
    stop_at, withdraw_at = (chance.choice([None, chance.randrange(40)]) for _ in range(2))

    def follow(event: ResearchEvent) -> None:
        at = len(world.events) - 1
        if at == stop_at:
            world.stop.cancel()
        if at == withdraw_at and not isinstance(event, SHOWN):
            world.readers = Readers.of()

    return follow


def check_end(world: ResearchWorld, record: ResearchRecord) -> None:
    last = world.events[-1]
    if record.report is None:
        assert isinstance(last, ResearchFailed)
        assert last.message
        assert last.advice
        return
    assert last == ResearchDone(record.report)
    check_numbering(record.report)
    check_counts(record.report)
    if world.readers != ANN:
        assert SECRET not in record.report.markdown


@pytest.mark.deep("faults")
@pytest.mark.parametrize("seed", range(scaled(6, 400, "faults")))
def test_there_is_a_report_or_a_reason(seed: int) -> None:
    chance = random.Random(seed)
    with research_world(seed=seed, private=["kb:price"]) as world:
        world.world.server.play(disturb(world, chance))
        world.on_event = change_rights(world, chance)
        if chance.random() < 0.3:
            world.world.put("news.test", "/aster", lambda _: serving.reply_text("no", status=503))
        budget = ResearchBudget(
            tokens=chance.choice([3_000, 20_000, 600_000]),
            cycles=chance.choice([3, 64]),
            pages=chance.choice([1, 48]),
            parallel_tasks=chance.choice([1, 4]),
            seconds=60.0,
        )
        record = world.run(QUESTION, uses_web=chance.random() < 0.5, budget=budget)
        check_end(world, record)
