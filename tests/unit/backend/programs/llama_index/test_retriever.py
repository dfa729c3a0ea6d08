"""Passages as LlamaIndex has them."""

import re
import subprocess
import sys
from datetime import datetime

import pytest
from llama_index.core.schema import TextNode

from backend.access.groups import GroupService
from backend.access.roles import Role
from backend.programs.llama_index import open_retriever
from connectors.errors import ConflictError, InvalidInputError, TemporarilyUnavailableError
from indexing.runtime.deadline import DeadlineExceededError
from tests.support.accounts import add_person
from tests.support.home import CHECKOUT
from tests.unit.backend.programs.langchain.conftest import ANN, BOB, Company

PAGE = (CHECKOUT / "docs" / "llama-index.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
BUDGET = "budget of QX-4471"


def test_a_passage_comes_with_its_document_and_score(company: Company) -> None:
    with open_retriever(ANN, k=1, settings=company.settings) as retriever:
        (found,) = retriever.retrieve(BUDGET)
    assert isinstance(found.node, TextNode)
    assert found.node.text == "The budget of Project QX-4471 is 4,711 euros."
    metadata = found.node.metadata
    assert metadata.keys() == {"id", "title", "source", "link", "updated_at"}
    assert metadata["id"] == "docs:ann/project.md"
    assert (metadata["title"], metadata["source"]) == ("Project QX-4471", "docs")
    assert datetime.fromisoformat(metadata["updated_at"]).tzinfo is not None
    assert found.score is not None
    assert found.score > 0


def test_filters_and_phrases_of_a_query_count(company: Company) -> None:
    with open_retriever(ANN, settings=company.settings) as retriever:
        found = retriever.retrieve('leave "tells the team"')
        assert [one.metadata["title"] for one in found] == ["Sick leave"]
        assert retriever.retrieve("leave source:other") == []
        assert retriever.retrieve("  ") == []


def test_documents_of_others_are_not_retrieved(company: Company) -> None:
    with open_retriever(BOB, k=200, settings=company.settings) as retriever:
        assert "4,711" not in str(retriever.retrieve(BUDGET))


def test_a_group_that_was_left_counts_no_more(company: Company) -> None:
    groups = GroupService(company.container.database)
    bob = BOB.removeprefix("user:")
    add_person(company.container.database, "admin@example.com", Role.ADMIN)
    add_person(company.container.database, bob)
    groups.create("finance")
    groups.add_member("finance", bob)
    with open_retriever(BOB, settings=company.settings) as retriever:
        assert "4,711" in str(retriever.retrieve(BUDGET))
        groups.remove_member("finance", bob)
        assert "4,711" not in str(retriever.retrieve(BUDGET))


@pytest.mark.anyio
async def test_a_coroutine_retrieves_the_same(company: Company) -> None:
    with open_retriever(ANN, settings=company.settings) as retriever:
        texts = [one.text for one in await retriever.aretrieve("leave")]
        assert texts == [one.text for one in retriever.retrieve("leave")]
        assert len(texts) == 3


@pytest.mark.parametrize("k", [0, -1, 201])
def test_the_number_of_passages_has_limits(company: Company, k: int) -> None:
    with (
        pytest.raises(InvalidInputError, match="k is a number"),
        open_retriever(ANN, k=k, settings=company.settings),
    ):
        pass


def test_what_went_wrong_is_raised(company: Company) -> None:
    hurried = company.settings.model_copy(update={"search_seconds": 0.000001})
    with (
        open_retriever(ANN, settings=hurried) as retriever,
        pytest.raises((DeadlineExceededError, TemporarilyUnavailableError)),
    ):
        retriever.retrieve("leave")
    with pytest.raises(ConflictError, match="was closed"):
        retriever.retrieve("leave")


def test_the_example_of_the_page_prints_passages(
    company: Company, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUARRY_HOME", str(company.settings.home))
    monkeypatch.setenv("QUARRY_EMBEDDING_URL", company.embedding.url)
    exec(EXAMPLE, {})
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("Leave 0.")
    assert line.endswith("Leave is asked for in the portal.")


def test_without_the_extra_the_import_says_what_to_install() -> None:
    program = "import sys; sys.modules['llama_index'] = None; import backend.programs.llama_index"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "pip install 'quarry-search[llama-index]'" in done.stderr.splitlines()[-1]
