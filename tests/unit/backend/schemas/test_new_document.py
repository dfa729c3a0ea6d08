"""What programs put in is refused by its first faults: none of a request takes long to be refused."""

import pytest
from pydantic import ValidationError

from backend.schemas.new_document import NewDocument, find_faults

ONE: dict[str, object] = {"id": "a", "title": "A", "text": "It says this.", "readers": ["public"]}


def _refuse(**given: object) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        NewDocument.model_validate(ONE | given)
    return caught.value


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"readers": [["x"] * 1_000, ["y"] * 1_000]}, "readers.0.0"),
        ({"readers": [["public"], ["public", "x", "y"]]}, "readers.1.1"),
        ({"tags": ["", ""]}, "tags.0"),
        ({"authors": [{"name": ""}, {"name": ""}]}, "authors.0.name"),
        ({"sections": [{"text": "\0"}, {"text": "\0"}], "text": None}, "sections.0.text"),
        ({"sections": [{"text": "x", "headings": ["", ""]}]}, "sections.0.headings.0"),
    ],
)
def test_a_list_is_refused_by_its_first_fault(given: dict[str, object], where: str) -> None:
    error = _refuse(**given)
    assert [one.where for one in find_faults(error)] == [where]
    assert error.error_count() == 1


def test_all_lists_of_readers_are_counted_together() -> None:
    clause = [f"group:g{number}" for number in range(1_000)]
    taken = NewDocument.model_validate(ONE | {"readers": [clause, clause]})
    assert sum(map(len, taken.readers)) == 2_000
    (fault,) = find_faults(_refuse(readers=[clause, clause, ["public"]]))
    assert fault.where == "readers"
    assert fault.message == "all lists together have more than 2,000 readers"
