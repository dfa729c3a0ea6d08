"""What all tests of the backend share."""

from collections.abc import Iterator

import pytest

from backend.api import warmup


@pytest.fixture(autouse=True, scope="session")
def _leave_garbage() -> Iterator[None]:
    """Collect no garbage for each server: of the objects of all tests, for each of hundreds of servers, that takes minutes."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(warmup, "freeze_garbage", lambda: None)
        yield
