"""A turn of Agent mode with all that it uses."""

from collections.abc import Iterator

import pytest

from tests.support.agent_world import AgentWorld, agent_world


@pytest.fixture
def world() -> Iterator[AgentWorld]:
    with agent_world() as served:
        yield served
