"""Renews the lease of a claim from a thread, so that it is short: what a dead process of another machine held is free soon."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType

from backend.store.documents.index_claims import ClaimLostError
from backend.sync.run_lease import STALL_TIME
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError

RENEWAL_SECONDS = 10.0
"""Seconds between two renewals: a lease of a minute outlasts several that fail."""


class LeaseRenewal:
    """Renews a lease during a `with` block, for as long as it makes progress: what hangs loses its claim.

    A block that ends without an error, but after its claim was lost, ends with ClaimLostError.

    Args:
        renew: called every few seconds. Where it fails, the next one may succeed; the lease outlasts a short outage.
    """

    def __init__(
        self,
        renew: Callable[[], object],
        seconds: float = RENEWAL_SECONDS,
        still: timedelta = STALL_TIME,
    ) -> None:
        self._renew = renew
        self._seconds = seconds
        self._still = still
        self._over = threading.Event()
        self._progressed_at = time.monotonic()
        self._lost: ClaimLostError | None = None
        self._thread = threading.Thread(target=self._go_on, name="lease", daemon=True)

    def __enter__(self) -> "LeaseRenewal":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        del kind, trace
        self._over.set()
        self._thread.join()
        if self._lost is not None and error is None:
            raise self._lost

    def record_progress(self) -> None:
        self._progressed_at = time.monotonic()

    def _go_on(self) -> None:
        while not self._over.wait(self._seconds):
            if time.monotonic() - self._progressed_at > self._still.total_seconds():
                return
            try:
                self._renew()
            except ClaimLostError as lost:
                self._lost = lost
                return
            except (TemporarilyUnavailableError, ActionRequiredError):
                continue
