"""What is to be closed is closed when its block ends, however it ends."""

import pytest

from connectors.closing import Closing


class Thing(Closing):
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_it_is_closed_at_the_end_of_its_block() -> None:
    thing = Thing()
    with thing as same:
        assert same is thing
        assert thing.closed == 0
    assert thing.closed == 1


def test_it_is_closed_when_the_block_fails_and_the_error_goes_on() -> None:
    thing = Thing()
    with pytest.raises(KeyError), thing:
        raise KeyError
    assert thing.closed == 1
