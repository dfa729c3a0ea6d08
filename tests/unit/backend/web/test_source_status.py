"""How a source stands, in words."""

from datetime import UTC, datetime, timedelta

import pytest

from backend.schemas.run import RunResponse
from backend.schemas.source import SourceResponse
from backend.web.source_status import SourceStatusView, _to_interval_choice, _to_view

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def _stands(state: str, **run: object) -> SourceStatusView:
    run_response = RunResponse.example().model_copy(update={"state": state, **run})
    return _to_view(
        SourceResponse.example().model_copy(update={"state": state, "run": run_response})
    )


def test_what_goes_on_is_reported_without_control_characters() -> None:
    going = SourceResponse.example().model_copy(
        update={"state": "running", "activity": "Indexing · a\u202eb.md"}
    )
    stands = _to_view(going)
    assert stands.doing == "Indexing · a\ufffdb.md"
    assert (stands.state, stands.is_open) == ("syncing", True)
    assert [one.name for one in stands.actions] == ["cancel", "pause"]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("done", ["permissions", "pause"]),
        ("paused", ["resume"]),
        ("failed", ["permissions", "pause"]),
        ("being removed", []),
    ],
)
def test_what_can_be_done_follows_from_the_state(state: str, words: list[str]) -> None:
    assert [one.name for one in _stands(state).actions] == words


def test_permissions_are_not_synced_where_the_settings_say_who_reads() -> None:
    fixed = SourceResponse.example().model_copy(update={"state": "done", "has_fixed_readers": True})
    assert [one.name for one in _to_view(fixed).actions] == ["pause"]


def test_the_error_is_that_of_a_run_that_failed() -> None:
    assert _stands("failed", error="It broke.").error == "It broke."
    assert _stands("done", error="It broke.").error == ""


def test_where_it_reads_is_reported_as_its_kind_has_it() -> None:
    assert _stands("done").where == "/srv/handbook"
    unknown = _to_view(SourceResponse.example().model_copy(update={"kind": "fax"}))
    assert (unknown.title, unknown.where) == ("Fax", "")


@pytest.mark.parametrize(
    ("kind", "icon"), [("folder", "folder"), ("git", "branch"), ("fax", "text")]
)
def test_a_kind_has_its_icon_or_that_of_any_text(kind: str, icon: str) -> None:
    assert _to_view(SourceResponse.example().model_copy(update={"kind": kind})).icon == icon


def test_the_next_start_comes_first() -> None:
    starts = {"prune": NOON + timedelta(hours=6), "incremental": NOON, "retry": None}
    stands = _to_view(SourceResponse.example().model_copy(update={"next_starts": starts}))
    assert [(one.label, one.at.hour) for one in stands.starts] == [
        ("Content sync", 12),
        ("Deletion check", 18),
    ]


def test_what_a_source_has_is_offered_too() -> None:
    rhythm = _to_interval_choice("prune", 7_200)
    assert (rhythm.label, rhythm.seconds) == ("Deletion check", 7_200)
    assert (7_200, "every 2 hours") in rhythm.options
    assert rhythm.options[-1] == (0, "never")
    assert (
        _to_interval_choice("prune", 3_600).options
        == _to_interval_choice("incremental", 300).options
    )
