"""What all tests of the backend share."""

from collections.abc import Iterator
from functools import cache

import pytest

from backend.api import warmup
from indexing.embedding import model_loading


@pytest.fixture(autouse=True, scope="session")
def _leave_garbage() -> Iterator[None]:
    """Collect no garbage for each server: of the objects of all tests, for each of hundreds of servers, that takes minutes."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(warmup, "freeze_garbage", lambda: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def _share_models() -> Iterator[None]:
    """Load each embedding model once for all containers of a process: that of one takes 0.6 s of a processor and 150 MB."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(model_loading, "load_embedder", cache(model_loading.load_embedder))
        yield
