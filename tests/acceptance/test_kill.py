"""Workers that are killed at any moment lose nothing, double nothing, leave nothing stale or half.

This is the short form; `python -m tests.benchmarks.kills` is the long one.
"""

from pathlib import Path

from tests.support.kills import Place, Trial

KILLS = 20
DOCUMENTS = 200


def test_whatever_is_killed_source_ledger_and_index_agree_in_the_end(
    tmp_path: Path, database_url: str
) -> None:
    (tmp_path / "files").mkdir()
    toll = Trial(Place(tmp_path, database_url), documents=DOCUMENTS, seed=1).run(KILLS)
    assert toll.kills == KILLS
    # Most of them came in the middle of something.
    assert toll.runs.get("interrupted", 0) > 0
