"""A provider on this machine, and Quarry's side of it."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from backend.access.openid.code_flow import CodeFlow
from tests.support.openid_provider import OpenIdProvider, connect, openid_provider


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    with openid_provider() as server:
        yield server


@pytest.fixture
def flow(provider: OpenIdProvider) -> Iterator[CodeFlow]:
    with closing(connect(provider)) as connected:
        yield CodeFlow(connected)
