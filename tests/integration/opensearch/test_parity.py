"""The cluster ranks as the local index does: the sample handbook, chunked and embedded by the real model."""

import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from backend.container import Container
from backend.search.facets import count_found
from backend.search.models import DocumentNumbers
from backend.search.query_syntax import parse_query
from backend.settings import Settings
from connectors.access import Readers
from indexing.index.protocols import Filters, Index, IndexQuery
from indexing.opensearch import open_index
from indexing.opensearch.client import OpenSearchSettings, connect
from indexing.opensearch.mapping import IndexLayout, VectorSettings
from indexing.runtime.deadline import Deadline
from indexing.text import tokenizer
from tests.support.home import Home
from tests.support.models import MODEL_CACHE, minilm
from tests.support.opensearch_server import SERVERS, url_of
from tests.support.parity import LEGS, average_overlap, compare_rankings, restrict_to_leg
from tests.support.rights import may_read

QUESTIONS = Path(__file__).parents[2] / "acceptance" / "handbook_questions.jsonl"
EXACT = IndexLayout(vectors=VectorSettings(search="exact"))
ASKERS = {
    "anybody": Readers.of(),
    "finance": Readers.of("group:finance"),
    "everything": Readers.of("group:finance", "group:leadership"),
    "a stranger": Readers.of("user:nobody@example.com"),
}


@dataclass(frozen=True)
class Pair:
    local: Index
    cluster: Index


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Container:
    home = Home(tmp_path_factory.mktemp("parity"))
    assert home.quarry("demo").code == 0
    return Container(Settings(home=home.path / "state", models=MODEL_CACHE))


@pytest.fixture(scope="module", params=SERVERS)
def pair(request: pytest.FixtureRequest, local: Container) -> Iterator[Pair]:
    client, prefix = connect(OpenSearchSettings(urls=(url_of(request.param),))), _prefix()
    identity = minilm().identity
    open_index.open_writer(client, prefix, identity, EXACT).write(local.engine.writer.export())
    with open_index.open_index(client, prefix, identity, EXACT) as cluster:
        yield Pair(local.engine.index, cluster)
    client.indices.delete(index=f"{prefix}-*")
    client.close()


def _prefix() -> str:
    return f"t-{secrets.token_hex(6)}"


@pytest.fixture(scope="module")
def queries() -> Sequence[IndexQuery]:
    lines = QUESTIONS.read_text("utf-8").splitlines()
    texts = [str(json.loads(line)["question"]) for line in lines]
    vectors = minilm().embed_queries(texts, Deadline.after(60))
    return [
        IndexQuery(text=text, vector=vector, alpha=0.5, exact=tokenizer.find_exact_terms(text))
        for text, vector in zip(texts, vectors, strict=True)
    ]


@pytest.mark.parametrize("leg", LEGS)
def test_each_leg_names_the_same_best(
    pair: Pair, queries: Sequence[IndexQuery], local: Container, leg: str
) -> None:
    """At least 90 % is required; with the same words and exact vectors it is nearly 100 %."""
    asked = [restrict_to_leg(query, leg) for query in queries]
    readers = local.home_database.resolve_readers(ASKERS["everything"])
    found = compare_rankings(pair.local, pair.cluster, asked, readers)
    assert average_overlap(found) >= 0.99


def test_exact_matches_are_the_same_every_time(
    pair: Pair, queries: Sequence[IndexQuery], local: Container
) -> None:
    asked = [query for query in queries if query.exact]
    readers = local.home_database.resolve_readers(ASKERS["everything"])
    assert len(asked) >= 8
    for each in compare_rankings(pair.local, pair.cluster, asked, readers):
        one, other = (
            [(hit.chunk.key, hit.evidence.exact) for hit in hits if hit.evidence.exact]
            for hits in (each.one, each.other)
        )
        assert sorted(one) == sorted(other)
        assert len(one) == 0 or one[0][1] == other[0][1]


@pytest.mark.parametrize("asker", ASKERS)
def test_everybody_sees_the_same_documents(
    pair: Pair, queries: Sequence[IndexQuery], local: Container, asker: str
) -> None:
    readers = local.home_database.resolve_readers(ASKERS[asker])
    for query in queries[:20]:
        wide = IndexQuery(text=query.text, vector=query.vector, alpha=1.0, size=400)
        (mine,) = pair.local.find([wide], readers, Deadline.after(60)).rankings
        (theirs,) = pair.cluster.find([wide], readers, Deadline.after(60)).rankings
        assert {hit.chunk.key for hit in mine} == {hit.chunk.key for hit in theirs}
        assert all(may_read(readers, hit.chunk.access) for hit in theirs)
    facets = [
        index.facets(Filters(), readers, Deadline.after(60)) for index in (pair.local, pair.cluster)
    ]
    assert facets[0] == facets[1]


def test_facets_of_a_search_are_alike(pair: Pair, local: Container) -> None:
    """They count what each engine retrieves for a query, here less than the 50 best passages."""
    found = []
    for index in (pair.local, pair.cluster):
        service = replace(local.chat.search, index=index)
        asked = service.request(
            parse_query('"QX-4031"'), Readers.of(), Filters(), service.deadline()
        )
        tool = service.tool(None, DocumentNumbers())
        found.append(count_found(tool, asked, tool.rank(asked, 20), 20))
    assert found[0] == found[1]
    assert 0 < sum(found[0].sources.values()) < 43


def test_raw_evidence_compares(pair: Pair, queries: Sequence[IndexQuery], local: Container) -> None:
    """Answers are declined by raw scores, which must not depend on the index engine."""
    readers = local.home_database.resolve_readers(ASKERS["everything"])
    for each in compare_rankings(pair.local, pair.cluster, queries, readers):
        theirs = {hit.chunk.key: hit.evidence for hit in each.other}
        for hit in each.one:
            other = theirs.get(hit.chunk.key)
            if other is None:
                continue
            assert other.cosine == pytest.approx(hit.evidence.cosine, abs=2e-3)
            assert other.word_share == pytest.approx(hit.evidence.word_share)
            if hit.evidence.bm25 is not None and other.bm25 is not None:
                assert other.bm25 == pytest.approx(hit.evidence.bm25, rel=0.02)
