"""Workers that are killed at any moment lose nothing, double nothing, leave nothing stale or half-written.

`python -m tests.benchmarks.kills` kills two hundred times.
"""

from pathlib import Path

import pytest

from tests.support.databases import Databases
from tests.support.kills import Place, Trial
from tests.support.opensearch_server import url_of
from tests.support.scaled_kills import scaled_place
from tests.support.soak import scaled

pytestmark = [pytest.mark.smoke, pytest.mark.deep("faults")]

KILLS = scaled(2, 20, "faults")
DOCUMENTS = scaled(60, 200, "faults")
SCALED_KILLS = scaled(1, 8, "faults")
"""Of processes that take seconds to come to something."""


def test_whatever_is_killed_source_ledger_and_index_agree_in_the_end(
    tmp_path: Path, database_url: str
) -> None:
    (tmp_path / "files").mkdir()
    toll = Trial(Place(tmp_path, database_url), documents=DOCUMENTS, seed=1).run(KILLS)
    assert toll.kills == KILLS
    if KILLS > 2:
        # Most of them came in the middle of something.
        assert toll.runs.get("interrupted", 0) > 0


def test_so_they_do_over_a_broker_and_a_cluster(tmp_path: Path, postgresql: Databases) -> None:
    with (
        postgresql.new() as database,
        scaled_place(tmp_path, database, url_of("opensearch-2")) as place,
    ):
        toll = Trial(place, documents=DOCUMENTS, seed=1).run(SCALED_KILLS)
    assert toll.kills == SCALED_KILLS
    assert toll.runs.get("done", 0) > 0
