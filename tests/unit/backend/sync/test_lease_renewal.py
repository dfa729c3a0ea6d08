"""A short lease is kept while its work goes on, and by no longer."""

import threading
import time
from datetime import timedelta

import pytest

from backend.store.documents.index_claims import ClaimLostError
from backend.sync.lease_renewal import LeaseRenewal
from connectors.errors import TemporarilyUnavailableError

BEAT = 0.01
PATIENCE = 10.0


class _Renewed:
    """Counts renewals; the first ones fail."""

    def __init__(self, failures: int = 0) -> None:
        self.count = 0
        self._failures = failures
        self.often = threading.Event()

    def renew(self) -> None:
        self.count += 1
        if self.count <= self._failures:
            raise TemporarilyUnavailableError("The database is away.", timedelta(seconds=1))
        if self.count > self._failures + 3:
            self.often.set()


def test_it_is_renewed_until_the_block_ends_also_after_failures() -> None:
    renewed = _Renewed(failures=2)
    with LeaseRenewal(renewed.renew, BEAT):
        assert renewed.often.wait(PATIENCE)
    count = renewed.count
    time.sleep(10 * BEAT)
    assert renewed.count == count


def test_a_claim_that_is_lost_ends_the_block_unless_it_failed_itself() -> None:
    called = threading.Event()

    def lose() -> None:
        called.set()
        raise ClaimLostError

    def work(begin: str) -> None:
        with LeaseRenewal(lose, BEAT):
            assert called.wait(PATIENCE)
            int(begin)

    with pytest.raises(ClaimLostError):
        work("1")
    with pytest.raises(ValueError, match="invalid literal"):
        work("one")


def test_what_makes_no_progress_is_renewed_no_more() -> None:
    renewed, still = _Renewed(), timedelta(seconds=1)
    with LeaseRenewal(renewed.renew, BEAT, still) as renewal:
        while not renewed.often.is_set():
            renewal.record_progress()
            time.sleep(BEAT)
        time.sleep(2 * still.total_seconds())
        count = renewed.count
        time.sleep(10 * BEAT)
        assert renewed.count == count
