from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from connectors.connector import Checkpoint
from connectors.sources.github.checkpoint import SyncCheckpoint, get_part_key
from connectors.sources.github.content_reader import PartStart

MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
STAMPS = st.just("") | MOMENTS.map(lambda moment: f"{moment:%Y-%m-%dT%H:%M:%SZ}")
PARTS = st.builds(
    get_part_key,
    st.integers(min_value=1),
    st.sampled_from(["issues", "discussions", "wiki", "files"]),
)
CHECKPOINTS = st.builds(
    SyncCheckpoint,
    settings_digest=st.text(),
    since=STAMPS,
    completed=st.dictionaries(PARTS, st.text()),
    started_at=STAMPS,
    completed_now=st.dictionaries(PARTS, st.text()),
    position=st.none() | st.tuples(PARTS, st.text()),
)


@given(checkpoint=CHECKPOINTS)
def test_a_checkpoint_is_parsed_as_it_was_stored(checkpoint: SyncCheckpoint) -> None:
    assert (
        SyncCheckpoint.parse(checkpoint.to_checkpoint(), checkpoint.settings_digest) == checkpoint
    )


@given(checkpoint=CHECKPOINTS)
def test_with_other_settings_a_run_begins_from_the_start(checkpoint: SyncCheckpoint) -> None:
    assert SyncCheckpoint.parse(
        checkpoint.to_checkpoint(), f"{checkpoint.settings_digest}!"
    ) == SyncCheckpoint(settings_digest=f"{checkpoint.settings_digest}!")


@given(value=st.text() | st.sampled_from(["1", "[]", '{"github": "x", "since": "yesterday"}']))
def test_an_invalid_checkpoint_starts_from_scratch(value: str) -> None:
    assert SyncCheckpoint.parse(Checkpoint(value), "x") == SyncCheckpoint(settings_digest="x")


def test_a_completed_part_resumes_and_another_starts_from_the_beginning() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    first = (
        SyncCheckpoint(settings_digest="x")
        .start(noon)
        .finish_part("1/files", "abc")
        .advance("1/issues", "here")
    )
    assert first.get_part_start("1/issues") == PartStart(position="here")
    # ten minutes are read twice: clocks do not agree to the second
    second = first.complete()
    assert second.get_part_start("1/files") == PartStart(
        since="2026-03-01T11:50:00Z", end_state="abc"
    )
    assert second.get_part_start("1/issues") == PartStart()
