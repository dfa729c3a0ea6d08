"""The home of the tests of LangChain, opened for LlamaIndex."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.backend.programs.langchain.conftest import Company, open_company


@pytest.fixture
def company(tmp_path: Path) -> Iterator[Company]:
    with open_company(tmp_path) as opened:
        yield opened


@pytest.fixture
def anyio_backend() -> str:
    """Runs tests that are coroutines by asyncio."""
    return "asyncio"
