"""Documents as LangChain has them."""

from datetime import datetime

import pytest

from backend.programs.langchain import OpenedHome
from connectors.errors import InvalidInputError, TemporarilyUnavailableError
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from tests.unit.backend.programs.langchain.conftest import Company


def test_a_passage_comes_with_its_document(anns_home: OpenedHome) -> None:
    (found,) = anns_home.make_retriever(1).invoke("budget of QX-4471")
    assert found.page_content == "The budget of Project QX-4471 is 4,711 euros."
    metadata = found.metadata
    assert metadata.keys() == {"id", "title", "source", "link", "updated_at", "score"}
    assert metadata["id"] == "docs:ann/project.md"
    assert (metadata["title"], metadata["source"]) == ("Project QX-4471", "docs")
    assert metadata["link"].endswith("/docs/ann/project.md")
    assert datetime.fromisoformat(metadata["updated_at"]).tzinfo is not None
    assert metadata["score"] > 0


def test_filters_and_phrases_of_a_query_count(anns_home: OpenedHome) -> None:
    retriever = anns_home.make_retriever()
    titles = [one.metadata["title"] for one in retriever.invoke('leave "tells the team"')]
    assert titles == ["Sick leave"]
    assert retriever.invoke("leave source:other") == []
    assert retriever.invoke("  ") == []


def test_documents_of_others_are_not_retrieved(bobs_home: OpenedHome) -> None:
    assert "4,711" not in str(bobs_home.make_retriever(200).invoke("budget of QX-4471"))


@pytest.mark.parametrize("k", [0, -1, 201])
def test_the_number_of_passages_has_limits(anns_home: OpenedHome, k: int) -> None:
    with pytest.raises(ValueError, match="k"):
        anns_home.make_retriever(k)
    with pytest.raises(InvalidInputError):
        anns_home.make_retriever().invoke("leave", None, k=k)


def test_what_went_wrong_is_raised(anns_home: OpenedHome, company: Company) -> None:
    del company
    retriever = anns_home.make_retriever()
    late = retriever.model_copy(update={"start_deadline": lambda: Deadline.after(0)})
    with pytest.raises((DeadlineExceededError, TemporarilyUnavailableError)):
        late.invoke("leave")
