"""What runs do, in words."""

from datetime import UTC, datetime

import pytest

from backend.sources.status_text import describe_activity, describe_progress
from backend.store.sync.runs import Process, Run, RunState
from indexing.ingestion.progress import Embedding, Progress


def progress(
    done: int = 0,
    total: int | None = None,
    *,
    stage: str = "indexing",
    item: str | None = None,
    rate: float = 0.0,
    embedding: Embedding | None = None,
) -> Progress:
    return Progress(
        source="desk",
        stage=stage,
        item=item,
        done=done,
        total=total,
        rate=rate,
        embedding=embedding,
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (progress(), "Indexing"),
        (progress(stage="starting"), "Starting"),
        (progress(1, rate=0.5), "Indexing 1 document so far · 0.5 a second"),
        (progress(0, 3_400), "Indexing 0 of 3,400 documents"),
        (
            progress(120, 3_480, rate=8, item="Leave"),
            "Indexing 120 of 3,480 documents · 8.0 a second · about 7 minutes left · Leave",
        ),
        (
            progress(120, 130, rate=8, embedding=Embedding(item="Leave", done=0, total=99)),
            "Indexing 120 of 130 documents · 8.0 a second · less than a minute left"
            " · embedding Leave",
        ),
        (
            progress(embedding=Embedding(item="Leave", done=319, total=9_757)),
            "Indexing · embedding Leave, passage 320 of 9,757",
        ),
        (
            progress(100, 100_000, stage="listing", rate=10),
            "Comparing with the source 100 of 100,000 documents · 10.0 a second"
            " · about 3 hours left",
        ),
        # Too early to tell how long it will take.
        (progress(10, 1_000, rate=10), "Indexing 10 of 1,000 documents · 10.0 a second"),
        (progress(stage="reindex"), "Reindex"),
    ],
)
def test_progress_is_reported_in_words(given: Progress, expected: str) -> None:
    assert describe_progress(given) == expected


def run(state: RunState, waiting_for: str | None) -> Run:
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    return Run(
        id=1,
        source="desk",
        kind="incremental",
        state=state,
        stage="indexing",
        item=None,
        counts={},
        error=None,
        holder=Process("here", 1, "1"),
        started_at=noon,
        renewed_at=noon,
        finished_at=None,
        waiting_for=waiting_for,
    )


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("the service, which is busy.", "Waiting: the service, which is busy."),
        ("Nothing moved for 15 minutes.", "Nothing moved for 15 minutes."),
    ],
)
def test_what_a_run_waits_for_is_reported(reason: str, expected: str) -> None:
    assert describe_activity(run("waiting", reason), progress(3)) == expected
    going = describe_activity(run("running", reason), progress(3))
    assert going == f"Indexing 3 documents so far · {expected}"


def test_a_run_that_embeds_says_so_though_it_waits_for_the_end_of_it() -> None:
    embedding = Embedding(item="Leave", done=0, total=1)
    going = run("running", "the batches of this run to be indexed")
    expected = describe_activity(going, progress(3, 9, embedding=embedding))
    assert expected == "Indexing 3 of 9 documents · embedding Leave"
    assert describe_activity(run("running", None), progress(3)) == "Indexing 3 documents so far"
