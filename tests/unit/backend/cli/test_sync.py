"""What `quarry sync` says of a source that was synced."""

import pytest
from rich.console import Console

from backend.cli.sync import print_sync_report
from indexing.ingestion.progress import Report


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (Report(), "nothing had changed"),
        (Report(has_other_members=True), "who may read has changed"),
        (Report(amended=2), "2 with new readers"),
        (Report(deleted=1, has_other_members=True), "1 deleted, who may read has changed"),
    ],
)
def test_it_says_what_changed_and_that_others_may_read(
    capsys: pytest.CaptureFixture[str], report: Report, said: str
) -> None:
    print_sync_report(Console(width=200), "docs", report, None)
    assert capsys.readouterr().out == f"docs: {said}\n"
