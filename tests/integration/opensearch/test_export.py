"""Exporting an index while others write to it."""

import pytest
from opensearchpy import OpenSearch

from indexing.index.protocols import Delete
from indexing.opensearch import export
from indexing.opensearch.open_index import open_writer
from tests.support.chunks import IDENTITY, document


def test_what_is_replaced_during_an_export_comes_whole_and_what_is_deleted_does_not_come(
    client: OpenSearch, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One document per request.
    monkeypatch.setattr(export, "MAX_CHUNKS", 2)
    writer = open_writer(client, prefix, IDENTITY)
    writer.write(document(name, f"{name} one", f"{name} two") for name in "abcde")
    exported = writer.export()
    assert next(exported).document_id == "a"
    newer = document("c", "c uno", "c due", "c tre", generation=2)
    writer.write([newer, Delete("d"), document("e", generation=2)])
    left = list(exported)
    assert [(each.document_id, each.generation) for each in left] == [("b", 1), ("c", 2), ("e", 2)]
    assert [chunk.text for chunk in left[0].chunks] == ["b one", "b two"]
    assert left[1].chunks == newer.chunks
    assert left[1].vectors == pytest.approx(newer.vectors, abs=1e-6)
    assert left[2].chunks == ()


@pytest.mark.parametrize("page", [1, 2, 3, 7])
def test_pages_of_any_size_contain_everything_once(
    client: OpenSearch, prefix: str, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "PAGE_SIZE", page)
    monkeypatch.setattr(export, "MAX_CHUNKS", page)
    writer = open_writer(client, prefix, IDENTITY)
    written = [document(f"{n}", *["text"] * n) for n in range(7)]
    writer.write(written)
    assert [known.id for known in writer.scan()] == [each.document_id for each in written]
    assert [each.chunks for each in writer.export()] == [each.chunks for each in written]
    assert [each.document_id for each in writer.export("3")] == ["4", "5", "6"]
