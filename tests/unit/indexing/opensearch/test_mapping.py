"""What an index is asked to be."""

import pytest

from indexing.opensearch.mapping import IndexLayout, VectorSettings, index_body
from indexing.opensearch.naming import write_alias
from tests.support.chunks import IDENTITY


@pytest.mark.parametrize(
    ("settings", "data_type", "parameters"),
    [
        (VectorSettings(), "float", {"m": 16, "ef_construction": 128}),
        (
            VectorSettings(quantisation="scalar", m=8),
            "float",
            {"m": 8, "ef_construction": 128, "encoder": {"name": "sq"}},
        ),
        (VectorSettings(quantisation="byte"), "byte", {"m": 16, "ef_construction": 128}),
        (
            VectorSettings(engine="faiss", ef_search=99, ef_construction=64),
            "float",
            {"m": 16, "ef_construction": 64, "ef_search": 99},
        ),
    ],
)
def test_vectors_are_laid_out_as_set(
    settings: VectorSettings, data_type: str, parameters: dict[str, object]
) -> None:
    body = index_body("name", IDENTITY, IndexLayout(vectors=settings))
    vector = body["mappings"]["properties"]["vector"]
    assert (vector["type"], vector["dimension"]) == ("knn_vector", IDENTITY.dimension)
    assert vector["data_type"] == data_type
    assert vector["method"] == {
        "name": "hnsw",
        "engine": settings.engine,
        "space_type": "innerproduct",
        "parameters": parameters,
    }


def test_nothing_gets_in_that_is_not_laid_out_and_nothing_without_its_route() -> None:
    mappings = index_body("name", IDENTITY, IndexLayout())["mappings"]
    assert mappings["dynamic"] == "strict"
    assert mappings["_routing"] == {"required": True}


def test_shards_and_copies_are_as_set() -> None:
    settings = index_body("name", IDENTITY, IndexLayout(shards=3, replicas=2))["settings"]["index"]
    assert (settings["number_of_shards"], settings["number_of_replicas"]) == (3, 2)


def test_an_index_has_its_alias_for_writes() -> None:
    assert index_body("name", IDENTITY, IndexLayout())["aliases"] == {write_alias("name"): {}}
