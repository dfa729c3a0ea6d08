from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from connectors.connector import Checkpoint
from connectors.sources.github.checkpoint import Mark, key
from connectors.sources.github.content_reader import Start

MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
STAMPS = st.just("") | MOMENTS.map(lambda moment: f"{moment:%Y-%m-%dT%H:%M:%SZ}")
PARTS = st.builds(
    key, st.integers(min_value=1), st.sampled_from(["issues", "discussions", "wiki", "files"])
)
MARKS = st.builds(
    Mark,
    chosen=st.text(),
    since=STAMPS,
    whole=st.dictionaries(PARTS, st.text()),
    began=STAMPS,
    walked=st.dictionaries(PARTS, st.text()),
    at=st.none() | st.tuples(PARTS, st.text()),
)


@given(mark=MARKS)
def test_a_checkpoint_says_where_a_run_stands(mark: Mark) -> None:
    assert Mark.of(mark.checkpoint(), mark.chosen) == mark


@given(mark=MARKS)
def test_with_other_settings_a_run_begins_from_the_start(mark: Mark) -> None:
    assert Mark.of(mark.checkpoint(), f"{mark.chosen}!") == Mark(chosen=f"{mark.chosen}!")


@given(value=st.text() | st.sampled_from(["1", "[]", '{"github": "x", "since": "yesterday"}']))
def test_what_says_nothing_sensible_begins_from_the_start(value: str) -> None:
    assert Mark.of(Checkpoint(value), "x") == Mark(chosen="x")


def test_a_part_that_was_read_goes_on_from_there_and_one_that_was_not_from_the_start() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    first = Mark(chosen="x").begun(noon).left("1/files", "abc").moved("1/issues", "here")
    assert first.start("1/issues") == Start(at="here")
    # ten minutes are read twice: clocks do not agree to the second
    second = first.done()
    assert second.start("1/files") == Start(since="2026-03-01T11:50:00Z", until="abc")
    assert second.start("1/issues") == Start()
