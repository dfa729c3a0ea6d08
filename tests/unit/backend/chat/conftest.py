"""A scripted language model for the tests of this room."""

from collections.abc import Iterator

import pytest

from tests.support.scripted_model import ScriptedModel


@pytest.fixture
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running
