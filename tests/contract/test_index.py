"""What every index does, whatever it is made of."""

import multiprocessing
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from connectors.access import EVERYBODY, NOBODY, Access, Readers
from connectors.document import Person
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.embedding.embedder import Vectors
from indexing.index.person_keys import PersonCount
from indexing.index.protocols import (
    Amend,
    DateRange,
    Delete,
    Facets,
    Filters,
    Found,
    Hit,
    Index,
    IndexChange,
    IndexedDocument,
    IndexQuery,
    IndexWriter,
    Replace,
    Selection,
    TextConditions,
    Written,
)
from indexing.index.spelling import Corrections, spelling_query
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from tests.support.chunks import DIMENSION, chunk, document, near, query, unit, vector, vectors
from tests.support.index_engines import (
    PUBLIC,
    Engine,
    LocalEngine,
    OpenSearchEngine,
    generations_seen,
    holding,
    is_whole,
    make_former,
    replace_again_and_again,
    soon,
    step,
    version,
    with_sparse_graph,
    write_until_killed,
)
from tests.support.languages import PASSAGES
from tests.support.opensearch_server import SERVERS, url_of
from tests.support.rights import may_read
from tests.support.soak import scaled

ANN = Readers.of("user:ann@example.com", "group:finance")
MAY = datetime(2026, 5, 1, tzinfo=UTC)
DAY = timedelta(days=1)
MANY_DOCUMENTS = scaled(100, 1_000, "engines")
"""With a hundred chunks each."""
KILLS = scaled(3, 6, "engines")


@pytest.fixture(params=["embedded", *SERVERS])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """Each kind of index, new and empty."""
    match request.param:
        case "embedded":
            yield LocalEngine(tmp_path / "index")
        case server:
            cluster = OpenSearchEngine(url_of(server), f"t-{secrets.token_hex(6)}")
            yield cluster
            cluster.remove()


@pytest.fixture
def writer(engine: Engine) -> IndexWriter:
    return engine.writer()


@pytest.fixture
def index(engine: Engine) -> Index:
    return engine.index()


def found(index: Index, asked: IndexQuery, readers: Readers = PUBLIC) -> list[str]:
    """Ids of the documents, best first."""
    return [hit.chunk.document_id for hit in hits(index, asked, readers)]


def hits(index: Index, asked: IndexQuery, readers: Readers = PUBLIC) -> tuple[Hit, ...]:
    (ranking,) = index.find([asked], readers, soon()).rankings
    return ranking


# --- finding


def test_an_empty_index_answers_with_nothing(index: Index, writer: IndexWriter) -> None:
    asked = query("anything", vector=vector("anything"), alpha=0.5, exact=("ERR-1",))
    assert index.find([asked, asked], PUBLIC, soon()) == Found(rankings=((), ()))
    assert index.chunks([ChunkRange("a", 0, 9)], PUBLIC, soon()) == [[]]
    assert index.facets(Filters(), PUBLIC, soon()) == Facets(
        sources={}, media_types={}, people={}, months={}
    )
    assert list(writer.scan()) == []


def test_no_question_has_no_answer(index: Index) -> None:
    assert index.find([], PUBLIC, soon()) == Found(rankings=())
    assert index.chunks([], PUBLIC, soon()) == []


def test_what_was_written_is_found_as_it_was(index: Index, writer: IndexWriter) -> None:
    written = Chunk(
        document_id="a",
        position=0,
        text="Leave is granted by the manager.",
        embedded_text="Handbook > Leave\nLeave is granted by the manager.\nteam: people",
        section=3,
        span=chunk("a", 0, "x" * 32).span,
        title="Handbook",
        link="https://example.com/a#leave",
        source="folder",
        media_type="text/markdown",
        access=Access.to(["public", "group:finance"]),
        page=7,
        heading_path=("Handbook", 'Leave "of absence"'),
        tags=frozenset({"team=people", "year=2026"}),
        sets=frozenset({"policies"}),
        projects=frozenset({"3"}),
        personas=frozenset({"3", "12"}),
        owners=(Person("Ann Lee", "Ann@Example.com"), Person("Bob  "), Person("")),
        boost=1.5,
        created_at=MAY,
        updated_at=MAY + timedelta(microseconds=1),
    )
    writer.write(
        [
            Replace(
                document_id="a",
                generation=1,
                content_hash="h",
                chunks=(written,),
                vectors=vectors(["a"]),
            )
        ]
    )
    assert [hit.chunk for hit in hits(index, query("leave"))] == [written]
    assert [hit.chunk for hit in hits(index, query("", vector=vector("a"), alpha=1.0))] == [written]
    assert index.chunks([ChunkRange("a", 0, 1)], PUBLIC, soon()) == [[written]]


def test_a_text_that_is_not_in_the_embedded_text_is_kept(index: Index, writer: IndexWriter) -> None:
    written = chunk("a", 0, "| a | b |", embedded_text="columns a and b")
    writer.write(
        [
            Replace(
                document_id="a",
                generation=1,
                content_hash="h",
                chunks=(written,),
                vectors=vectors(["a"]),
            )
        ]
    )
    assert [hit.chunk for hit in hits(index, query("columns"))] == [written]


def test_more_than_the_candidates_of_a_leg_can_be_asked_for(
    index: Index, writer: IndexWriter
) -> None:
    writer.write([document("a", *["apples and pears"] * 500)])
    assert len(hits(index, query("apples", size=450))) == 450
    assert len(hits(index, query("", size=450, vector=vector("x"), alpha=1.0))) == 450


def test_every_query_has_its_ranking_in_their_order(index: Index, writer: IndexWriter) -> None:
    writer.write([document("a", "apples"), document("b", "pears"), document("c", "plums")])
    asked = [query("pears"), query("quinces"), query("apples"), query("pears")]
    rankings = index.find(asked, PUBLIC, soon()).rankings
    assert [[hit.chunk.document_id for hit in ranking] for ranking in rankings] == [
        ["b"],
        [],
        ["a"],
        ["b"],
    ]


def test_no_more_are_found_than_were_asked_for(index: Index, writer: IndexWriter) -> None:
    writer.write([document("a", *["apples and pears"] * 30)])
    for size in (1, 7, 30, 400):
        asked = query("apples", size=size, vector=vector("apples and pears"), alpha=0.5)
        assert len(hits(index, asked)) == min(size, 30)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("The vacation policies of the company", "policy"),
        ("Ein Café in Zürich", "cafe zurich"),
        ("有给年假的规定", "年假"),
        ("就業規則と休暇", "休暇"),
        ("휴가 정책 안내", "휴가"),
        ("Правила отпуска", "отпуска"),
        ("see foo_bar.py for it", "foo_bar.py"),
    ],
)
def test_words_are_found_in_their_forms_and_scripts(
    index: Index, writer: IndexWriter, text: str, asked: str
) -> None:
    writer.write([document("a", text), document("b", "nothing of the kind")])
    assert found(index, query(asked)) == ["a"]


def test_no_query_is_syntax(index: Index, writer: IndexWriter) -> None:
    writer.write([document("a", "entirely other things")])
    texts = ['") OR (', "words:x", "*", "a AND", "[1 TO 2]", "\\", "-", "^2", "~", "", " ", "the"]
    for text in texts:
        asked = query(text, exact=(text,) if text.strip() else ())
        assert (text, found(index, asked)) == (text, [])


def test_nearest_vectors_come_first_with_their_cosine(index: Index, writer: IndexWriter) -> None:
    asked = vector("asked")
    cosines = [0.1, 0.9, -0.4, 0.6]
    writer.write(
        document(f"{cosine}", "text", vectors_of=near(asked, cosine)[None]) for cosine in cosines
    )
    ranking = hits(index, query("", vector=asked, alpha=1.0))
    assert [hit.chunk.document_id for hit in ranking] == ["0.9", "0.6", "0.1", "-0.4"]
    measured = [hit.evidence.cosine for hit in ranking]
    assert measured == pytest.approx([0.9, 0.6, 0.1, -0.4], abs=2e-3)
    assert [hit.evidence.vector_rank for hit in ranking] == [1, 2, 3, 4]


def test_alpha_changes_the_ranking(index: Index, writer: IndexWriter) -> None:
    asked = vector("asked")
    writer.write(
        [
            document("by words", "refund refund refund", vectors_of=near(asked, 0.1)[None]),
            document("by both", "refund and other things", vectors_of=near(asked, 0.5)[None]),
            document("by vector", "money back", vectors_of=near(asked, 0.9)[None]),
        ]
    )
    rankings = {
        alpha: found(index, query("refund", vector=asked, alpha=alpha))
        for alpha in (0.0, 0.2, 0.8, 1.0)
    }
    # At 0 and 1 the other leg is not asked at all.
    assert rankings[0.0] == ["by words", "by both"]
    assert rankings[1.0] == ["by vector", "by both", "by words"]
    # By words 4 and 2 (one deviation either side of the mean, plus 3), by vector 3 - 1.22, 3, 3 + 1.22:
    # at 0.2: 3.2 + 0.36 = 3.56, 1.6 + 0.6 = 2.2, 0 + 0.84; at 0.8: 0.8 + 1.42 = 2.22, 0.4 + 2.4 = 2.8, 3.38.
    assert rankings[0.2] == ["by words", "by both", "by vector"]
    assert rankings[0.8] == ["by vector", "by both", "by words"]


def test_without_a_vector_words_alone_decide(index: Index, writer: IndexWriter) -> None:
    writer.write([document("a", "refund"), document("b", "money")])
    assert found(index, query("refund", vector=None, alpha=0.7)) == ["a"]


def test_hits_say_why(index: Index, writer: IndexWriter) -> None:
    asked = vector("asked")
    writer.write(
        [
            document("words", "travel costs are refunded", vectors_of=near(asked, 0.2)[None]),
            document("vector", "money comes back", vectors_of=near(asked, 0.8)[None]),
            document("code", "form HR-2041 of 2019", vectors_of=near(asked, -0.5)[None]),
        ]
    )
    asked_for = query("refunded travel costs HR-2041", vector=asked, alpha=0.5, exact=("HR-2041",))
    why = {hit.chunk.document_id: hit.evidence for hit in hits(index, asked_for)}
    assert (why["code"].exact, why["code"].exact_rank) == (1, 1)
    assert (why["words"].exact, why["words"].exact_rank) == (0, None)
    assert why["vector"].keyword_rank is None
    assert why["vector"].bm25 is None
    assert {name: evidence.vector_rank for name, evidence in why.items()} == {
        "vector": 1,
        "words": 2,
        "code": 3,
    }
    # Its words are: refund, travel, cost, hr-2041, hr, 2041.
    assert {name: evidence.word_share for name, evidence in why.items()} == {
        "words": 3 / 6,
        "vector": 0.0,
        "code": 3 / 6,
    }


def test_raw_evidence_does_not_depend_on_the_other_candidates(
    index: Index, writer: IndexWriter
) -> None:
    writer.write(
        [document("a", "refund of costs"), *(document(f"{n}", "refund " * n) for n in range(2, 9))]
    )
    (one,) = [
        hit.evidence.bm25 for hit in hits(index, query("refund")) if hit.chunk.document_id == "a"
    ]
    (other,) = hits(index, query("refund", filters=Filters(document_ids=frozenset({"a"}))))
    assert one is not None
    assert other.evidence.bm25 == pytest.approx(one)


def test_a_keyword_hit_reports_its_cosine_too(index: Index, writer: IndexWriter) -> None:
    writer.write([document("a", "refund", vectors_of=near(vector("asked"), 0.3)[None])])
    (hit,) = hits(index, query("refund", vector=vector("asked"), alpha=0.0))
    assert hit.evidence.cosine == pytest.approx(0.3, abs=2e-3)
    assert hit.evidence.vector_rank is None


def test_equals_are_ranked_alike_each_time(index: Index, writer: IndexWriter) -> None:
    same = vector("same")[None]
    writer.write(document(f"{n}", "the very same text", vectors_of=same) for n in range(40))
    asked = query("same text", vector=vector("same"), alpha=0.5, size=20)
    first = found(index, asked)
    assert len(set(first)) == 20
    assert all(found(index, asked) == first for _ in range(5))


def test_copies_that_differ_in_a_number_share_a_score_where_their_vectors_are_near(
    index: Index, writer: IndexWriter
) -> None:
    asked = vector("asked")
    cosines = {"five": 0.62, "nine": 0.64, "ten": 0.1, "other": -0.4}
    writer.write(
        document(name, f"the office closes at {name}", vectors_of=near(asked, cosine)[None])
        for name, cosine in cosines.items()
    )
    ranking = hits(index, query("when office closes", vector=asked, alpha=0.5))
    scores = {hit.chunk.document_id: hit.score for hit in ranking}
    assert scores["five"] == pytest.approx(scores["nine"])
    assert scores["nine"] > scores["ten"] > scores["other"]


def test_boost_multiplies(index: Index, writer: IndexWriter) -> None:
    writer.write(document(name, "the same text", vectors_of=vector("v")[None]) for name in "abc")
    writer.write([Amend(document_id="b", boost=2.0), Amend(document_id="c", boost=0.5)])
    ranking = hits(index, query("same text", vector=vector("v"), alpha=0.5))
    assert [(hit.chunk.document_id, hit.chunk.boost) for hit in ranking] == [
        ("b", 2.0),
        ("a", 1.0),
        ("c", 0.5),
    ]
    scores = [hit.score for hit in ranking]
    assert scores == pytest.approx([2 * scores[1], scores[1], scores[1] / 2])


# --- languages


@pytest.mark.parametrize(
    ("language", "asked"),
    [
        ("de", "Urlaubstag"),  # Urlaubstage
        ("fr", "employé"),  # employés
        ("ru", "сотрудники"),  # сотрудников
        ("ar", "إجازة"),  # الإجازة
        ("tr", "çalışan"),  # Çalışanların
        ("tr", "calisanlarin"),  # as some people type it
        ("ro", "angajatul"),  # Angajații
        ("vi", "nhan vien"),  # nhân viên
        ("el", "άδεια"),  # άδειας
        ("sr", "запослена"),  # Запослени
    ],
)
def test_words_are_found_in_the_forms_of_their_language(
    index: Index, writer: IndexWriter, language: str, asked: str
) -> None:
    writer.write([document("a", PASSAGES["en"]), document("b", PASSAGES[language])])
    (hit,) = hits(index, query(asked))
    assert hit.chunk.document_id == "b"
    assert hit.evidence.word_share == 1.0


def test_a_language_is_known_to_an_open_index_as_soon_as_it_is_written(
    index: Index, writer: IndexWriter
) -> None:
    writer.write([document("a", PASSAGES["de"])])
    assert found(index, query("Urlaubstag")) == ["a"]
    assert found(index, query("vacances")) == []
    writer.write([document("b", PASSAGES["fr"]), document("c", PASSAGES["ca"])])
    assert found(index, query("employé")) == ["b"]
    writer.write([Amend(document_id="b", sets=frozenset({"s"})), Delete("a"), Delete("c")])
    assert found(index, query("employé")) == ["b"]


def test_a_document_in_two_languages_is_found_in_both(index: Index, writer: IndexWriter) -> None:
    writer.write([document("a", PASSAGES["de"], PASSAGES["fr"], "Urlaubstage")])
    assert [hit.chunk.position for hit in hits(index, query("Urlaubstag"))] == [2, 0]
    assert [hit.chunk.position for hit in hits(index, query("employé"))] == [1]


def test_stop_words_of_the_language_of_the_query_are_not_searched(
    index: Index, writer: IndexWriter
) -> None:
    writer.write([document("a", PASSAGES["de"]), document("b", "DER DIE DAS")])
    assert found(index, query("der die Urlaubstage")) == ["a"]


def test_what_one_may_not_read_changes_no_words_of_a_query(
    index: Index, writer: IndexWriter
) -> None:
    """German takes `der` and `die` for stop words; without it they are words like any other."""
    secret = document("b", PASSAGES["de"], access=Access.to(["group:finance"]))
    writer.write([document("a", "DER DIE DAS"), secret])
    (hit,) = hits(index, query("der die"))
    assert (hit.chunk.document_id, hit.evidence.word_share) == ("a", 1.0)
    assert hits(index, query("der die"), ANN) == ()


def test_an_index_of_former_words_is_searched_and_written_with_them(engine: Engine) -> None:
    make_former(engine)
    engine.writer().write([document("a", PASSAGES["de"])])
    index = engine.index()
    assert found(index, query("Mitarbeiter")) == ["a"]
    assert found(index, query("Mitarbeitern")) == []
    engine.writer().write([Amend(document_id="a", sets=frozenset({"s"}))])
    (exported,) = engine.writer().export()
    assert exported.chunks[0].sets == {"s"}


def test_an_index_from_before_there_were_projects_is_given_them(engine: Engine) -> None:
    make_former(engine)
    projects = frozenset({"7"})
    engine.writer().write([document("a", "secret", projects=projects), document("b", "secret")])
    engine.writer().write([Amend(document_id="b", personas=projects)])
    index = engine.index()

    def passed(filters: Filters) -> list[str]:
        return [hit.chunk.document_id for hit in hits(index, query("secret", filters=filters))]

    assert passed(Filters(project_id_filter=projects)) == ["a"]
    assert passed(Filters(persona_id_filter=projects)) == ["b"]
    assert {each.document_id: each.chunks[0].projects for each in engine.writer().export()} == {
        "a": projects,
        "b": frozenset(),
    }


# --- exact things first


EXACT = [
    # what, the term, a text that holds it, and one that holds all its words but not the term
    (
        "part number",
        "PX-4410/B",
        "The gasket PX-4410/B fits the older pump.",
        "B 4410 PX PX-4411/B",
    ),
    ("error code", "ERR-1042", "When ERR-1042 is shown, restart.", "1042 ERR ERR-10421"),
    ("file name", "deploy_all.sh", "Run deploy_all.sh by hand.", "sh all deploy deploy-all.sh"),
    ("address", "ops@example.com", "Write to ops@example.com then.", "com example ops@example.org"),
    ("phrase", "to be or not", "He asked: to be, or not? To be or not.", "not or be to"),
    (
        "phrase of two words",
        "annual leave",
        "Each has annual leave.",
        "leave annual annually leaves",
    ),
    ("Japanese phrase", "就業規則", "新しい就業規則です", "規則の就業 則規業就"),
]


@pytest.mark.parametrize(
    ("term", "text", "decoy"), [row[1:] for row in EXACT], ids=[row[0] for row in EXACT]
)
def test_what_holds_an_exact_term_comes_first_though_the_vectors_disagree(
    index: Index, writer: IndexWriter, term: str, text: str, decoy: str
) -> None:
    asked = vector("asked")
    decoys = [
        document(f"{n}", f"restart gasket {decoy} " * 3, vectors_of=near(asked, 0.99)[None])
        for n in range(60)
    ]
    holder = document("holder", text, vectors_of=near(asked, -0.9)[None])
    writer.write([*decoys, holder])
    for alpha in (0.0, 0.5, 1.0):
        asked_for = query(f"restart gasket {term}", vector=asked, alpha=alpha, exact=(term,))
        best, *others = hits(index, asked_for)
        assert (alpha, best.chunk.document_id, best.evidence.exact) == (alpha, "holder", 1)
        assert all(hit.evidence.exact == 0 for hit in others)


def test_more_exact_terms_come_before_fewer(index: Index, writer: IndexWriter) -> None:
    writer.write(
        [
            document("none", "E-1 E-2 E-30 E-20 E-10" + " valve" * 9),
            document("one", "E-10 valve valve valve"),
            document("two", "E-10 and, far from it, E-22"),
        ]
    )
    terms = ("E-10", "E-22")
    asked = query("valve E-10 E-22", exact=terms)
    ranking = [(hit.chunk.document_id, hit.evidence.exact) for hit in hits(index, asked)]
    assert ranking[:2] == [("two", 2), ("one", 1)]


def test_a_longer_code_is_another_code(index: Index, writer: IndexWriter) -> None:
    writer.write([document("a", "E-22.1 E-220 XE-22"), document("b", "E-22 here")])
    ranking = hits(index, query("E-22", exact=("E-22",)))
    assert {hit.chunk.document_id: hit.evidence.exact for hit in ranking} == {"b": 1, "a": 0}


def test_a_code_that_very_many_hold_names_none(index: Index, writer: IndexWriter) -> None:
    # 120 of 200 chunks is more than 50 and more than 5 %: the code counts as a word like any other.
    writer.write(
        document(f"{n}", f"report {'ISO-9001' if n < 120 else 'older'} page") for n in range(200)
    )
    writer.write([document("right", "travel report of the board")])
    ranking = hits(index, query("travel ISO-9001", exact=("ISO-9001",), size=10))
    assert ranking[0].chunk.document_id == "right"
    assert {hit.evidence.exact for hit in ranking} == {0}


# --- access: through every read path


def by_words(index: Index, readers: Readers, filters: Filters) -> set[str]:
    return set(found(index, query("secret", filters=filters), readers))


def by_vector(index: Index, readers: Readers, filters: Filters) -> set[str]:
    return set(found(index, query("", vector=vector("near"), alpha=1.0, filters=filters), readers))


def by_exact_term(index: Index, readers: Readers, filters: Filters) -> set[str]:
    return set(found(index, query("?", alpha=1.0, exact=("X-77",), filters=filters), readers))


def by_facets(index: Index, readers: Readers, filters: Filters) -> set[str]:
    return set(index.facets(filters, readers, soon()).sources)


def by_id(index: Index, readers: Readers, filters: Filters) -> set[str]:
    ids = sorted(filters.document_ids or {"a", "b", "c", "d", "e"})
    parts = index.chunks([ChunkRange(name, 0, 9) for name in ids], readers, soon())
    return {chunk.document_id for part in parts for chunk in part}


ReadPath = Callable[[Index, Readers, Filters], set[str]]

FILTERED_READ_PATHS = [by_words, by_vector, by_exact_term, by_facets]
READ_PATHS = [*FILTERED_READ_PATHS, by_id]


@pytest.fixture(params=READ_PATHS, ids=lambda read_path: read_path.__name__)
def read_path(request: pytest.FixtureRequest) -> ReadPath:
    chosen: ReadPath = request.param
    return chosen


@pytest.fixture(params=FILTERED_READ_PATHS, ids=lambda read_path: read_path.__name__)
def filtered_read_path(request: pytest.FixtureRequest) -> ReadPath:
    chosen: ReadPath = request.param
    return chosen


def secret(name: str, **fields: Any) -> Replace:
    """A document that each read path finds; its source is its name, so that facets return it too."""
    return document(name, "a secret X-77", **{"source": name, **fields})


def test_only_holders_of_a_token_see_a_document(
    index: Index, writer: IndexWriter, read_path: ReadPath
) -> None:
    writer.write(
        [
            secret("a", access=EVERYBODY),
            secret("b", access=Access.to(["user:ann@example.com"])),
            secret("c", access=Access.to(["group:finance", "group:board"])),
            secret("d", access=Access.to(["external:drive:42"])),
            secret("e", access=NOBODY),
        ]
    )
    everything = Filters()
    assert read_path(index, PUBLIC, everything) == {"a"}
    assert read_path(index, Readers.of("user:ann@example.com"), everything) == {"a", "b"}
    assert read_path(index, Readers.of("group:board"), everything) == {"a", "c"}
    assert read_path(index, ANN, everything) == {"a", "b", "c"}
    assert read_path(index, Readers.of("external:drive:42"), everything) == {"a", "d"}
    assert read_path(index, Readers.of("group:fin", "group:finance2"), everything) == {"a"}
    assert read_path(index, Readers.of("group:board\0", "group:finance\0x"), everything) == {"a"}
    assert read_path(index, Readers(frozenset({"user:ann@example.com"})), everything) == {"b"}
    assert read_path(index, Readers(frozenset()), everything) == set()


def test_only_those_who_meet_every_clause_see_a_document(
    index: Index, writer: IndexWriter, read_path: ReadPath
) -> None:
    space, board = ["external:7:space"], ["group:board", "user:ann@example.com"]
    restricted = Access.all_of([space, board])
    narrower = Access.all_of([space, board, ["group:finance"]])
    writer.write(
        [
            secret("a", access=Access.to(space)),
            secret("b", access=restricted),
            secret("c", access=narrower),
            secret("d", access=Access.to(board)),
        ]
    )

    def seen(*tokens: str) -> set[str]:
        return read_path(index, holding(tokens, [restricted, narrower]), Filters())

    assert seen() == set()
    assert seen(*space) == {"a"}
    assert seen(*board) == {"d"}
    assert seen(*space, "group:board") == {"a", "b", "d"}
    assert seen(*space, "group:finance") == {"a"}
    assert seen(*space, "user:ann@example.com", "group:finance") == {"a", "b", "c", "d"}
    # Every single token, without what is derived from them.
    assert read_path(index, Readers.of(*space, *board, "group:finance"), Filters()) == {"a", "d"}


def test_one_clause_more_or_less_holds_when_the_write_returns(
    index: Index, writer: IndexWriter, read_path: ReadPath
) -> None:
    space, board = ["external:7:space"], ["group:board"]
    both = Access.all_of([space, board])
    member, director = Readers.of(*space), holding([*space, *board], [both])
    writer.write([secret("a", access=Access.to(space))])
    steps = [
        (both, set[str](), {"a"}),
        (Access.to(space), {"a"}, {"a"}),
        (both, set[str](), {"a"}),
        (Access.all_of([space, ["group:finance"]]), set[str](), set[str]()),
    ]
    for access, by_member, by_director in steps:
        writer.write([Amend(document_id="a", access=access)])
        assert read_path(index, member, Filters()) == by_member
        assert read_path(index, director, Filters()) == by_director


def test_new_access_holds_when_the_write_returns(
    index: Index, writer: IndexWriter, read_path: ReadPath
) -> None:
    writer.write([secret("a"), secret("b")])
    steps = [
        (Access.to(["group:finance"]), {"b"}, {"a", "b"}),
        (NOBODY, {"b"}, {"b"}),
        (Access.to(["user:ann@example.com"]), {"b"}, {"a", "b"}),
        (EVERYBODY, {"a", "b"}, {"a", "b"}),
    ]
    for access, public, ann in steps:
        assert writer.write([Amend(document_id="a", access=access)]) == Written(amended=1)
        assert read_path(index, PUBLIC, Filters()) == public
        assert read_path(index, ANN, Filters()) == ann


def test_an_amendment_leaves_text_and_vectors_as_they_are(
    index: Index, writer: IndexWriter
) -> None:
    writer.write(
        [
            document(
                "a", "first", "second", sets=frozenset({"old"}), tags=frozenset({"k=v"}), boost=2.0
            )
        ]
    )
    asked = query("", vector=vector("first"), alpha=1.0)
    before = hits(index, asked)
    access, sets = Access.to(["group:finance"]), frozenset({"new"})
    projects, personas = frozenset({"7"}), frozenset({"8", "9"})
    writer.write(
        [Amend(document_id="a", access=access, sets=sets, projects=projects, personas=personas)]
    )
    after = hits(index, asked, ANN)
    assert [hit.chunk for hit in after] == [
        replace(hit.chunk, access=access, sets=sets, projects=projects, personas=personas)
        for hit in before
    ]
    assert [hit.evidence for hit in after] == [hit.evidence for hit in before]
    assert list(writer.scan()) == [IndexedDocument("a", 1, 2, "hash of a 1", access)]


def test_what_is_hidden_is_shown_to_nobody(
    index: Index, writer: IndexWriter, read_path: ReadPath
) -> None:
    writer.write([secret("a", hidden=True), secret("b")])
    assert read_path(index, PUBLIC, Filters()) == {"b"}
    writer.write([Amend(document_id="a", hidden=False), Amend(document_id="b", hidden=True)])
    assert read_path(index, PUBLIC, Filters()) == {"a"}
    writer.write([Amend(document_id="b", access=EVERYBODY)])
    assert read_path(index, PUBLIC, Filters()) == {"a"}


def test_a_replacement_brings_its_own_access(
    index: Index, writer: IndexWriter, read_path: ReadPath
) -> None:
    writer.write([secret("a")])
    writer.write([secret("a", generation=2, access=Access.to(["group:finance"]))])
    assert read_path(index, PUBLIC, Filters()) == set()
    assert read_path(index, ANN, Filters()) == {"a"}


@dataclass(frozen=True, kw_only=True)
class ChangingDeadline(Deadline):
    """Makes a change of the index when a search checks its deadline for the `number`-th time."""

    number: int
    change: Callable[[], object]
    checks: list[float] = field(default_factory=list)

    def check(self) -> None:
        self.checks.append(self.remaining())
        if len(self.checks) == self.number:
            self.change()
        super().check()


@pytest.fixture
def unprotected(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """The engine, with nothing but the check of the fetch itself between a change and an asker.

    The local index reads in one transaction of SQLite, which hides changes, and removes old rows at once.
    Without both, a change is in the tables when chunks are fetched, as it is on a cluster.
    """
    if isinstance(engine, LocalEngine):
        monkeypatch.setattr("indexing.local.snapshot.read_transaction", nullcontext)
        monkeypatch.setattr("indexing.local.writer.clean_up", lambda *_: None)
    return engine


def forbid(generation: int) -> list[IndexChange]:
    del generation
    return [Amend(document_id="a", access=Access.to(["group:finance"]))]


def hide(generation: int) -> list[IndexChange]:
    del generation
    return [Amend(document_id="a", hidden=True)]


def replace_text(generation: int) -> list[IndexChange]:
    return [document("a", "the new secret X-77", generation=generation)]


def replace_and_forbid(generation: int) -> list[IndexChange]:
    return [secret("a", generation=generation, access=NOBODY)]


def delete_and_reuse(generation: int) -> list[IndexChange]:
    """The other document may be given the internal number of the deleted one."""
    return [Delete("a"), document(f"b{generation}", "of no interest", generation=generation)]


CHANGES = [forbid, hide, replace_text, replace_and_forbid, delete_and_reuse]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_between_finding_and_fetching_counts(
    unprotected: Engine, change: Callable[[int], list[IndexChange]]
) -> None:
    writer, index = unprotected.writer(), unprotected.index()
    asked = [
        query("secret"),
        query("", vector=vector("a secret X-77"), alpha=1.0),
        query("?", exact=("X-77",)),
    ]
    for number in count(1):
        writer.write([secret("a", generation=2 * number)])
        changes = change(2 * number + 1)
        deadline = ChangingDeadline(
            at=soon().at, number=number, change=partial(writer.write, changes)
        )
        rankings = index.find(asked, PUBLIC, deadline).rankings
        shown = [hit.chunk.text for ranking in rankings for hit in ranking]
        if len(deadline.checks) < number:
            assert shown.count("a secret X-77") == len(asked)
            break
        assert "a secret X-77" not in shown
    assert number > 3, "the change should have come between the legs and the fetch too"


def test_a_crowd_of_forbidden_documents_does_not_stand_in_the_way(
    index: Index, writer: IndexWriter
) -> None:
    asked = vector("asked")
    crowd = document(
        "crowd",
        *["refund X-77 " * 3] * 700,
        readers=["group:board"],
        vectors_of=np.repeat(asked[None], 700, axis=0),
    )
    mine = document("mine", "one refund of many X-77", vectors_of=near(asked, 0.1)[None])
    writer.write([crowd, mine])
    assert found(index, query("refund")) == ["mine"]
    assert found(index, query("", vector=asked, alpha=1.0)) == ["mine"]
    assert found(index, query("?", exact=("X-77 X-77", "one refund"))) == ["mine"]


# --- filters


def test_each_filter_lets_pass_what_it_names(
    index: Index, writer: IndexWriter, filtered_read_path: ReadPath
) -> None:
    writer.write(
        [
            secret(
                "a",
                media_type="text/html",
                sets=frozenset({"hr", "it"}),
                tags=frozenset({"lang=en"}),
                projects=frozenset({"1"}),
                personas=frozenset({"2"}),
            ),
            secret(
                "b",
                media_type="text/plain",
                sets=frozenset({"it"}),
                tags=frozenset({"lang=de", "team=x"}),
                projects=frozenset({"1", "2"}),
            ),
            secret("c", media_type="application/pdf"),
        ]
    )

    def passed(**fields: Any) -> set[str]:
        return filtered_read_path(index, PUBLIC, Filters(**fields))

    assert passed() == {"a", "b", "c"}
    assert passed(sources=frozenset({"a", "c", "none"})) == {"a", "c"}
    assert passed(media_types=frozenset({"text/html", "application/pdf"})) == {"a", "c"}
    assert passed(sets=frozenset({"hr"})) == {"a"}
    assert passed(sets=frozenset({"hr", "it"})) == {"a", "b"}
    assert passed(tags=frozenset({"team=x", "lang=en"})) == {"a", "b"}
    assert passed(document_ids=frozenset({"b", "none"})) == {"b"}
    assert passed(sets=frozenset({"it"}), tags=frozenset({"lang=en"})) == {"a"}
    assert passed(project_id_filter=frozenset({"1"})) == {"a", "b"}
    assert passed(project_id_filter=frozenset({"2", "3"})) == {"b"}
    assert passed(persona_id_filter=frozenset({"2"})) == {"a"}
    # The same word in another field is another thing, and nothing named lets nothing pass.
    assert passed(sources=frozenset({"hr"})) == set()
    names = ("sources", "media_types", "sets", "tags", "people", "document_ids")
    for name in (*names, "project_id_filter", "persona_id_filter"):
        assert passed(**{name: frozenset()}) == set()


def test_one_of_the_alternatives_has_to_accept_besides(
    index: Index, writer: IndexWriter, filtered_read_path: ReadPath
) -> None:
    writer.write(
        [
            secret("a", sets=frozenset({"hr"})),
            secret("b", sets=frozenset({"it"}), projects=frozenset({"1"})),
            secret("c", personas=frozenset({"2"})),
            secret("d", access=Access.to(["user:other@example.com"]), projects=frozenset({"1"})),
        ]
    )
    hr, project = (
        Filters(sets=frozenset({"hr"})),
        Filters(project_id_filter=frozenset({"1"})),
    )
    persona = Filters(persona_id_filter=frozenset({"2"}))

    def passed(**fields: Any) -> set[str]:
        return filtered_read_path(index, PUBLIC, Filters(**fields))

    assert passed(any_of=(hr, project)) == {"a", "b"}
    assert passed(any_of=(hr, persona)) == {"a", "c"}
    assert passed(any_of=(hr, project), sets=frozenset({"it"})) == {"b"}
    assert passed(any_of=(Filters(), hr)) == {"a", "b", "c"}
    assert passed(any_of=(Filters(sets=frozenset()),)) == set()
    assert passed(any_of=(hr, Filters(any_of=(persona, project)))) == {"a", "b", "c"}
    assert passed(any_of=(Filters(sources=frozenset({"b"}), sets=frozenset({"it"})), persona)) == {
        "b",
        "c",
    }
    narrowed = Filters(any_of=(hr, project)).narrowed_by(Filters(any_of=(persona, project)))
    assert filtered_read_path(index, PUBLIC, narrowed) == {"b"}


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_text_conditions_hold_for_every_leg(
    index: Index, writer: IndexWriter, alpha: float
) -> None:
    writer.write(
        [
            document(
                "a", "The purple parade begins at noon", "Nobody needs a ticket for the parade"
            ),
            document("b", "A parade in purple"),
            document("c", "The Purple-Parade plan is an old draft"),
            document("d", "The purple parade is secret", readers=["user:eve@example.com"]),
        ]
    )

    def passed(
        *phrases: str, excluded: Sequence[str] = (), exact: tuple[str, ...] = ()
    ) -> set[str]:
        asked = query(
            "purple parade plan",
            vector=vector("A parade in purple"),
            alpha=alpha,
            exact=exact,
            conditions=TextConditions(phrases, tuple(excluded)),
        )
        return {f"{hit.chunk.document_id}{hit.chunk.position}" for hit in hits(index, asked)}

    assert passed() == {"a0", "a1", "b0", "c0"}
    assert passed("purple parade") == {"a0", "c0"}
    assert passed("purple parade", exact=("purple parade",)) == {"a0", "c0"}
    assert passed("purple parade", "noon") == {"a0"}
    assert passed("parade purple") == set()
    assert passed("purple giraffe") == set()
    assert passed(excluded=["draft"]) == {"a0", "a1", "b0"}
    assert passed(excluded=["purple parade", "ticket"]) == {"b0"}
    assert passed("purple parade", excluded=["old draft"]) == {"a0"}
    # Words as they are written, not their stems; what holds no word asks for nothing.
    assert passed(excluded=["drafts", "plans"]) == {"a0", "a1", "b0", "c0"}
    assert passed("?!", excluded=["…"]) == {"a0", "a1", "b0", "c0"}


def test_queries_of_one_call_keep_their_own_conditions(index: Index, writer: IndexWriter) -> None:
    writer.write([document("a", "red apple"), document("b", "green apple")])
    asked = [
        query("apple", vector=vector("x"), conditions=TextConditions(excluded=(word,)))
        for word in ("red", "green", "blue")
    ]
    rankings = index.find(asked, PUBLIC, soon()).rankings
    found_ids = [{hit.chunk.document_id for hit in ranking} for ranking in rankings]
    assert found_ids == [{"b"}, {"a"}, {"a", "b"}]


def test_queries_with_one_vector_find_what_each_finds_alone(
    index: Index, writer: IndexWriter
) -> None:
    writer.write([document("a", "red apple"), document("b", "green apple"), document("c", "pear")])
    shared = vector("green apple")
    asked = [
        query("red apple", vector=shared, alpha=0.5),
        query("red", vector=shared, alpha=0.2),
        query("red apple", vector=shared, alpha=0.5, size=1),
        query("pear", vector=vector("pear"), alpha=0.5),
        query("red", vector=shared, alpha=0.2, filters=Filters(document_ids=frozenset({"b", "c"}))),
    ]
    together = index.find(asked, PUBLIC, soon()).rankings
    assert together == tuple(index.find([one], PUBLIC, soon()).rankings[0] for one in asked)
    assert [len(ranking) for ranking in together] == [3, 3, 1, 3, 2]


def corrections(index: Index, message: str, readers: Readers = PUBLIC) -> Corrections:
    return index.suggest_corrections(spelling_query(message), readers, soon())


def test_unknown_words_are_led_to_the_nearest_words(index: Index, writer: IndexWriter) -> None:
    writer.write(
        [
            document(
                "a", "The warranty of a used scanner", "Warranties and reviews of performance"
            ),
            document("b", "A spare power supply for the calibration laboratory"),
            document("c", "Secret parachutes", readers=["user:ann@example.com"]),
        ]
    )
    # Nearest first; a transposition is one place, and two places may differ in a long word.
    assert corrections(index, "warrenty of a used scaner") == {
        "warrenty": ("warranty",),
        "scaner": ("scanner",),
    }
    assert corrections(index, "perfomance reveiws") == {
        "perfomance": ("performance",),
        "reveiws": ("reviews",),
    }
    assert corrections(index, "calibrtaoin lab") == {"calibrtaoin": ("calibration",)}
    # Two words for one, one for two, and the beginning of the last.
    assert corrections(index, "powersupply") == {"powersupply": ("power supply",)}
    assert corrections(index, "powersupplies") == {"powersupplies": ("power supplies",)}
    assert corrections(index, "labora tory") == {"labora tory": ("laboratory",)}
    assert corrections(index, "spare calib") == {"calib": ("calibration",)}
    assert corrections(index, "calib spare") == {}
    # Known words, in any inflection, are left alone, and so is what is near nothing.
    assert corrections(index, "scanners reviewing warranty") == {}
    assert corrections(index, "zzzqqq xyzzy") == {}
    # A short word is a word, if an unknown one: `span` is not `spare`.
    assert corrections(index, "span of power") == {}


def test_suggestions_and_their_absence_tell_nothing_of_what_may_not_be_read(
    index: Index, writer: IndexWriter
) -> None:
    writer.write(
        [
            document("a", "Secret parachute", readers=["user:ann@example.com"]),
            document("b", "Public parachutist"),
        ]
    )
    assert corrections(index, "parachuta", ANN) == {"parachuta": ("parachute",)}
    assert corrections(index, "parachuta") == {}
    # A word that only others may read is unknown, and led to what may be read.
    assert corrections(index, "secret", ANN) == {}
    assert corrections(index, "parachutish") == {"parachutish": ("parachutist",)}
    writer.write([Amend(document_id="a", access=EVERYBODY)])
    assert corrections(index, "parachuta") == {"parachuta": ("parachute",)}


def test_a_word_is_unknown_once_no_document_that_may_be_read_holds_it(
    index: Index, writer: IndexWriter
) -> None:
    writer.write([document("a", "A lantern"), document("b", "A lanterm")])
    assert corrections(index, "lantern lanterm") == {}
    writer.write([Amend(document_id="a", access=Access.to(["user:ann@example.com"]))])
    assert corrections(index, "lantern lanterm", ANN) == {}
    assert corrections(index, "lantern") == {"lantern": ("lanterm",)}
    writer.write([Delete("b")])
    assert corrections(index, "lanterm", ANN) == {"lanterm": ("lantern",)}
    assert corrections(index, "lantern") == {}


def test_a_word_is_known_however_many_hold_it_whom_the_asker_may_not_read(
    index: Index, writer: IndexWriter
) -> None:
    """What is found first belongs to others here."""
    ann = ["user:ann@example.com"]
    writer.write(
        [document(f"s{n:02}", "Secret parachutes and scanners", readers=ann) for n in range(30)]
    )
    writer.write(
        [document("t", "A parachute, some scarves, and much beside these that makes it longer")]
    )
    assert corrections(index, "parachute parachutes") == {}
    assert corrections(index, "parachutte") == {"parachutte": ("parachute",)}
    assert corrections(index, "scanner") == {}
    assert corrections(index, "scannner", ANN)["scannner"][0] in ("scanner", "scanners")
    assert corrections(index, "scarvess") == {"scarvess": ("scarves",)}


def test_a_person_is_the_same_by_every_name(
    index: Index, writer: IndexWriter, filtered_read_path: ReadPath
) -> None:
    writer.write(
        [
            secret("a", owners=(Person("Ann Lee", "Ann@Example.com"), Person("Bob"))),
            secret("b", owners=(Person("Lee, A.", "ann@example.com"),), tags=frozenset({"bob"})),
            secret("c", owners=(Person("  BOB "),)),
            secret("d", owners=(Person("Ann Lee"), Person("Bobby")), sets=frozenset({"bob"})),
            secret("e"),
        ]
    )

    def passed(*keys: str, **fields: Any) -> set[str]:
        return filtered_read_path(index, PUBLIC, Filters(people=frozenset(keys), **fields))

    assert passed("ann@example.com") == {"a", "b"}
    assert passed("bob") == {"a", "c"}
    assert passed("bob", "ann lee") == {"a", "c", "d"}
    assert passed("ann@example.com", sources=frozenset({"b", "c"})) == {"b"}
    # A key is no beginning of another, no name beside one, and nothing that cannot be stored.
    assert passed("bo", "ann@example.com\nAnn Lee", "Bob", "bob\0", "\ud800") == set()


def test_a_filter_by_person_outlasts_an_amendment_and_follows_a_new_version(
    index: Index, writer: IndexWriter, filtered_read_path: ReadPath
) -> None:
    ann, bob = (Person("Ann", "ann@example.com"),), (Person("Bob"),)
    writer.write([secret("a", owners=ann), secret("b", owners=ann, hidden=True)])
    writer.write(
        [
            Amend(document_id="a", sets=frozenset({"hr"}), access=Access.to(["group:finance"])),
            Amend(document_id="b", hidden=False, boost=2.0),
        ]
    )
    by_ann, by_bob = (
        Filters(people=frozenset({"ann@example.com"})),
        Filters(people=frozenset({"bob"})),
    )
    assert filtered_read_path(index, PUBLIC, by_ann) == {"b"}
    assert filtered_read_path(index, ANN, by_ann) == {"a", "b"}
    writer.write([secret("a", owners=bob, generation=2), Delete("b")])
    assert filtered_read_path(index, ANN, by_ann) == set()
    assert filtered_read_path(index, PUBLIC, by_bob) == {"a"}


@pytest.mark.parametrize("field", ["created", "updated"])
def test_a_date_range_begins_with_its_first_moment_and_ends_before_its_last(
    index: Index, writer: IndexWriter, filtered_read_path: ReadPath, field: str
) -> None:
    moments = {
        "a": MAY - DAY,
        "b": MAY,
        "c": MAY + DAY,
        "d": None,
        "e": datetime(1965, 1, 1, tzinfo=UTC),
    }
    writer.write([secret(name, **{f"{field}_at": moment}) for name, moment in moments.items()])

    def passed(since: datetime | None, until: datetime | None) -> set[str]:
        dates: dict[str, Any] = {field: DateRange(since, until)}
        return filtered_read_path(index, PUBLIC, Filters(**dates))

    assert passed(None, None) == {"a", "b", "c", "d", "e"}
    assert passed(MAY, None) == {"b", "c"}
    assert passed(None, MAY) == {"a", "e"}
    assert passed(MAY, MAY + DAY) == {"b"}
    assert passed(MAY, MAY) == set()
    moved = (MAY + timedelta(hours=5)).astimezone(
        datetime.fromisoformat("2026-01-01T00:00+05:00").tzinfo
    )
    assert passed(None, moved) == {"a", "b", "e"}


def test_a_filter_follows_an_amendment(
    index: Index, writer: IndexWriter, filtered_read_path: ReadPath
) -> None:
    writer.write([secret("a", sets=frozenset({"hr"})), secret("b")])
    writer.write(
        [Amend(document_id="a", sets=frozenset()), Amend(document_id="b", sets=frozenset({"hr"}))]
    )
    assert filtered_read_path(index, PUBLIC, Filters(sets=frozenset({"hr"}))) == {"b"}


@pytest.mark.parametrize(
    ("field", "name"), [("projects", "project_id_filter"), ("personas", "persona_id_filter")]
)
def test_memberships_of_projects_and_assistants_are_amended(
    index: Index, writer: IndexWriter, filtered_read_path: ReadPath, field: str, name: str
) -> None:
    mine: dict[str, Any] = {name: frozenset({"1"})}

    def amend(document_id: str, *ids: str) -> None:
        changed: dict[str, Any] = {field: frozenset(ids)}
        writer.write([Amend(document_id=document_id, **changed)])

    writer.write([secret("a", sets=frozenset({"1"}), **{field: frozenset({"1"})}), secret("b")])
    assert filtered_read_path(index, PUBLIC, Filters(**mine)) == {"a"}
    amend("b", "1", "2")
    assert filtered_read_path(index, PUBLIC, Filters(**mine)) == {"a", "b"}
    writer.write([Amend(document_id="b", boost=2.0, sets=frozenset())])
    amend("a")
    assert filtered_read_path(index, PUBLIC, Filters(**mine)) == {"b"}
    amend("b", "2")
    assert filtered_read_path(index, PUBLIC, Filters(**mine)) == set()
    assert filtered_read_path(index, PUBLIC, Filters(sets=frozenset({"1"}))) == {"a"}


def test_a_writer_selects_documents_whoever_may_read_them(writer: IndexWriter) -> None:
    en, de = frozenset({"lang=en"}), frozenset({"lang=de", "team=x"})
    one, both = frozenset({"1"}), frozenset({"1", "12"})
    writer.write(
        [
            document("wiki:hr/a", "x", "y", tags=en, sets=one),
            document("wiki:hr/é", "x", tags=de, access=NOBODY),
            document("wiki:hr\U0010ffff", "x", tags=de, sets=both),
            document("wiki2:hr/a", "x", tags=de, hidden=True),
            document("wiki:hr/empty"),
        ]
    )

    def selected(**fields: Any) -> set[str]:
        found = list(writer.select(Selection(**fields)))
        assert len(found) == writer.count([Selection(**fields), Selection(**fields)])
        return {each.id for each in found}

    everything = {"wiki:hr/a", "wiki:hr/é", "wiki:hr\U0010ffff", "wiki2:hr/a"}
    assert selected() == everything
    assert selected(prefix="wiki:") == everything - {"wiki2:hr/a"}
    assert selected(prefix="wiki:hr/") == {"wiki:hr/a", "wiki:hr/é"}
    assert selected(prefix="wiki:hr") == everything - {"wiki2:hr/a"}
    assert selected(prefix="wiki:\ud800") == selected(tag="\0") == selected(tag="none") == set()
    assert selected(tag="team=x", prefix="wiki") == everything - {"wiki:hr/a"}
    assert selected(document_ids=frozenset({"wiki:hr/a", "none"})) == {"wiki:hr/a"}
    assert selected(document_ids=frozenset()) == set()
    assert selected(in_set="1") == {"wiki:hr/a", "wiki:hr\U0010ffff"}
    assert selected(in_set="12", tag="lang=en") == selected(in_set="lang=en") == set()
    assert selected(outside_set="12", tag="team=x") == {"wiki:hr/é", "wiki2:hr/a"}
    assert writer.count([Selection(tag="lang=en"), Selection(prefix="wiki:hr/")]) == 2
    assert writer.count([]) == 0


def test_what_is_selected_says_its_tags_and_sets_and_may_be_amended_meanwhile(
    writer: IndexWriter,
) -> None:
    names = [f"a:{n:04}" for n in range(2_100)]
    tags = frozenset({"k=v", "l=w"})
    writer.write(document(name, name, tags=tags, sets=frozenset({"1"})) for name in names)
    amended = 0
    for each in writer.select(Selection(prefix="a:", outside_set="2")):
        assert (each.tags, each.sets) == (tags, frozenset({"1"}))
        if amended < 3:
            writer.write([Amend(document_id=each.id, sets=frozenset({"1", "2"}))])
        amended += 1
    assert amended == 2_100
    assert writer.count([Selection(in_set="2")]) == 3
    assert writer.count([Selection(outside_set="2", prefix="a:")]) == 2_097


def test_queries_of_one_call_keep_their_own_filters(index: Index, writer: IndexWriter) -> None:
    writer.write([secret("a"), secret("b")])
    asked = [
        query("secret", vector=vector("v"), alpha=0.5, filters=Filters(sources=frozenset({name})))
        for name in ("b", "none", "a")
    ]
    rankings = index.find(asked, PUBLIC, soon()).rankings
    assert [[hit.chunk.document_id for hit in ranking] for ranking in rankings] == [
        ["b"],
        [],
        ["a"],
    ]


def test_facets_count_documents_of_sets(index: Index, writer: IndexWriter) -> None:
    one, both = frozenset({"1"}), frozenset({"1", "2"})
    writer.write(
        [
            document("a", "x", "y", sets=both, tags=frozenset({"1=2"})),
            document("b", "x", sets=one, source="mail"),
            document("c", "x"),
            document("d", "x", sets=both, readers=["group:finance"]),
            document("e", "x", sets=frozenset({"3"}), hidden=True),
        ]
    )
    assert index.facets(Filters(), PUBLIC, soon()).sets == {"1": 2, "2": 1}
    assert index.facets(Filters(), ANN, soon()).sets == {"1": 3, "2": 2}
    assert index.facets(Filters(sources=frozenset({"mail"})), ANN, soon()).sets == {"1": 1}
    writer.write([Amend(document_id="b", sets=frozenset({"2"}))])
    assert index.facets(Filters(), PUBLIC, soon()).sets == {"1": 1, "2": 2}


def test_facets_count_documents(index: Index, writer: IndexWriter) -> None:
    writer.write(
        [
            document("a", "x", "y", "z", source="mail", updated_at=MAY, owners=(Person("Bob"),)),
            document(
                "b",
                "x",
                source="mail",
                media_type="text/html",
                updated_at=MAY - timedelta(microseconds=1),
            ),
            document("c", "x", source="wiki"),
            document("d", "x", source="wiki", readers=["group:finance"], updated_at=MAY + 31 * DAY),
        ]
    )
    assert index.facets(Filters(), PUBLIC, soon()) == Facets(
        sources={"mail": 2, "wiki": 1},
        media_types={"text/plain": 2, "text/html": 1},
        people={"bob": PersonCount("Bob", 1)},
        months={"2026-05": 1, "2026-04": 1},
    )
    assert index.facets(Filters(sources=frozenset({"wiki"})), ANN, soon()) == Facets(
        sources={"wiki": 2}, media_types={"text/plain": 2}, people={}, months={"2026-06": 1}
    )


def test_people_are_counted_and_called_as_most_documents_call_them(
    index: Index, writer: IndexWriter
) -> None:
    def by(name: str, **fields: Any) -> Replace:
        return document(name, "x", "y", **fields)

    writer.write(
        [
            by("a", owners=(Person("A. Lee", "ann@example.com"),)),
            by("b", owners=(Person("Ann Lee", "ANN@example.com"), Person("Bob"))),
            # Whoever stands there twice counts once.
            by("c", owners=(Person("Ann Lee", "ann@example.com"), Person("", "ann@example.com"))),
            by("d", owners=(Person("bob"),), source="wiki"),
            by("e", owners=(Person(" "), Person("", "eve@example.com")), source="wiki"),
            by("f"),
        ]
    )
    ann, eve = PersonCount("Ann Lee", 3), PersonCount("eve@example.com", 1)
    assert index.facets(Filters(), PUBLIC, soon()).people == {
        "ann@example.com": ann,
        "bob": PersonCount("Bob", 2),
        "eve@example.com": eve,
    }
    assert index.facets(Filters(sources=frozenset({"wiki"})), PUBLIC, soon()).people == {
        "bob": PersonCount("bob", 1),
        "eve@example.com": eve,
    }
    with_bob = index.facets(Filters(people=frozenset({"bob"})), PUBLIC, soon())
    assert with_bob.sources == {"folder": 1, "wiki": 1}
    assert with_bob.people["ann@example.com"] == PersonCount("Ann Lee", 1)


def test_people_of_documents_that_one_may_not_read_are_not_reported(
    index: Index, writer: IndexWriter
) -> None:
    ann, informer = Person("Ann Lee", "ann@example.com"), Person("Mole", "mole@example.com")
    fired = Person("Ann Lee (leaves in May)", "ann@example.com")
    writer.write(
        [
            document("a", "x", owners=(ann,)),
            document("b", "x", owners=(fired, informer), readers=["group:finance"]),
            document("c", "x", owners=(fired,), readers=["group:finance"]),
            document("d", "x", owners=(informer,), hidden=True),
            document("e", "x", owners=(informer,), access=NOBODY),
        ]
    )

    def people(readers: Readers) -> Any:
        return index.facets(Filters(), readers, soon()).people

    # Neither is there anybody whom only the others name, nor the name that only they know.
    assert people(PUBLIC) == {"ann@example.com": PersonCount("Ann Lee", 1)}
    assert people(ANN) == {
        "ann@example.com": PersonCount("Ann Lee (leaves in May)", 3),
        "mole@example.com": PersonCount("Mole", 1),
    }
    writer.write([Amend(document_id="b", access=EVERYBODY), Delete("c")])
    assert people(PUBLIC) == {
        "ann@example.com": PersonCount("Ann Lee", 2),
        "mole@example.com": PersonCount("Mole", 1),
    }
    writer.write([Amend(document_id="b", hidden=True)])
    assert people(ANN) == {"ann@example.com": PersonCount("Ann Lee", 1)}


# --- chunks by place


def test_chunks_come_by_place(index: Index, writer: IndexWriter) -> None:
    writer.write([document("a", *(f"part {n}" for n in range(6))), document("b", "other")])
    ranges = [
        ChunkRange("a", 2, 4),
        ChunkRange("b", 0, 1),
        ChunkRange("a", 4, 99),
        ChunkRange("a", -3, 1),
        ChunkRange("a", 9, 12),
        ChunkRange("a", 3, 3),
        ChunkRange("missing", 0, 5),
        ChunkRange("a\0", 0, 5),
        ChunkRange("a\ud800", 0, 5),
        ChunkRange("a", 2, 4),
    ]
    parts = index.chunks(ranges, PUBLIC, soon())
    assert [[chunk.key for chunk in part] for part in parts] == [
        [("a", 2), ("a", 3)],
        [("b", 0)],
        [("a", 4), ("a", 5)],
        [("a", 0)],
        [],
        [],
        [],
        [],
        [],
        [("a", 2), ("a", 3)],
    ]


# --- writing


def test_writing_reports_what_it_did(index: Index, writer: IndexWriter) -> None:
    assert writer.write([]) == Written()
    first = writer.write([document("a", "one", "two", generation=5), document("b", "three")])
    assert first == Written(replaced=2, chunks=3)
    second = writer.write(
        [
            document("a", "older", generation=4),
            document("a", "newer", generation=6),
            Delete("b"),
            Delete("b"),
            Amend(document_id="none", hidden=True),
            Amend(document_id="a", boost=2.0),
        ]
    )
    assert second == Written(
        replaced=1, chunks=1, deleted=1, amended=1, stale=("a",), missing=("b", "none")
    )
    assert list(writer.scan()) == [IndexedDocument("a", 6, 1, "hash of a 6", EVERYBODY)]
    assert found(index, query("older newer one two three")) == ["a"]


def test_what_comes_late_touches_no_later_version(index: Index, writer: IndexWriter) -> None:
    writer.write([document("a", "text", generation=7), document("b", "text", generation=7)])
    late: list[IndexChange] = [Delete("a", up_to=6), Amend(document_id="b", access=NOBODY, up_to=6)]
    assert writer.write(late) == Written(stale=("a", "b"))
    assert sorted(found(index, query("text"))) == ["a", "b"]
    in_time: list[IndexChange] = [
        Delete("a", up_to=7),
        Amend(document_id="b", access=NOBODY, up_to=8),
    ]
    assert writer.write(in_time) == Written(deleted=1, amended=1)
    assert found(index, query("text")) == []
    assert writer.write([Delete("a", up_to=1)]) == Written(missing=("a",))


def test_the_same_generation_may_be_written_again(index: Index, writer: IndexWriter) -> None:
    writer.write([document("a", "before"), document("a", "after")])
    assert found(index, query("before")) == []
    assert found(index, query("after")) == ["a"]


def test_changes_are_made_in_their_order(index: Index, writer: IndexWriter) -> None:
    changes: list[IndexChange] = [
        document("a", "first"),
        Amend(document_id="a", access=NOBODY),
        document("b", "first"),
        Delete("a"),
        document("a", "again", generation=1),
        Delete("b"),
    ]
    assert writer.write(iter(changes)) == Written(replaced=3, chunks=3, deleted=2, amended=1)
    assert found(index, query("first again")) == ["a"]


def test_of_an_old_version_nothing_is_left(index: Index, writer: IndexWriter) -> None:
    writer.write([document("a", "apples", "pears", "plums")])
    writer.write([document("a", "cherries", generation=2)])
    assert found(index, query("apples pears plums")) == []
    everything = hits(index, query("", vector=vector("pears"), alpha=1.0))
    assert [hit.chunk.text for hit in everything] == ["cherries"]
    assert len(index.chunks([ChunkRange("a", 0, 9)], PUBLIC, soon())[0]) == 1
    writer.write([Delete("a")])
    assert found(index, query("cherries", vector=vector("cherries"), alpha=0.5)) == []
    assert list(writer.scan()) == []


def test_a_document_without_chunks_is_known_and_not_found(
    index: Index, writer: IndexWriter
) -> None:
    writer.write([document("a", "text"), document("empty"), document("b", "text")])
    writer.write([document("a", generation=2)])
    assert list(writer.scan()) == [
        IndexedDocument("a", 2, 0, "hash of a 2"),
        IndexedDocument("b", 1, 1, "hash of b 1", EVERYBODY),
        IndexedDocument("empty", 1, 0, "hash of empty 1"),
    ]
    assert found(index, query("text", vector=vector("text"), alpha=0.5)) == ["b"]
    assert index.facets(Filters(), PUBLIC, soon()).sources == {"folder": 1}
    assert writer.write([Amend(document_id="empty", access=EVERYBODY), Delete("empty")]) == Written(
        amended=1, deleted=1
    )


def test_the_survey_is_by_id(writer: IndexWriter) -> None:
    names = [f"{n:05}" for n in range(2_500)]
    writer.write(document(name) for name in reversed(names))
    assert [known.id for known in writer.scan()] == names


def test_the_survey_reports_who_finds_what(writer: IndexWriter) -> None:
    finance = Access.to(["group:finance", "user:ann@example.com"])
    both = Access.all_of([["group:finance", "group:board"], ["external:7:space"]])
    writer.write(
        [
            document("a", "one"),
            document("b", "two", access=finance),
            document("c", "three", access=NOBODY),
            document("d", "four", access=finance, hidden=True),
            document("e"),
            document("f", "six", access=both),
        ]
    )
    writer.write([Amend(document_id="e", access=EVERYBODY)])
    known = {each.id: each.access for each in writer.scan()}
    rest = {"c": NOBODY, "d": finance, "e": NOBODY, "f": both}
    assert known == {"a": EVERYBODY, "b": finance, **rest}
    writer.write([Amend(document_id="a", access=both), Amend(document_id="b", boost=2.0)])
    known = {each.id: each.access for each in writer.scan()}
    assert known == {"a": both, "b": finance, **rest}


def _told(exported: Replace) -> tuple[str, int, str, tuple[Chunk, ...]]:
    """All of a Replace but its vectors."""
    said = exported.document_id, exported.generation, exported.content_hash
    return (*said, exported.chunks)


def _odd_documents() -> list[Replace]:
    """Documents of which an export could forget something, by id."""
    rich: dict[str, Any] = {
        "page": 7,
        "heading_path": ("Handbook", 'Leave "of absence"'),
        "tags": frozenset({"team=people", "year=2026"}),
        "sets": frozenset({"policies"}),
        "projects": frozenset({"1"}),
        "personas": frozenset({"2", "3"}),
        "owners": (Person("Ann", "ann@example.com"), Person("Bob")),
        "boost": 1.5,
        "created_at": MAY,
        "updated_at": MAY + timedelta(microseconds=1),
        "embedded_text": "columns a and b",
    }
    return [
        document("a", "one", "two", "three", generation=4, **rich),
        document("b", "nobody's", access=NOBODY),
        document("c", generation=3),
        document("d", "hidden from all", hidden=True, readers=["group:finance"]),
        document("e", "space and board", access=Access.all_of([["group:a"], ["group:b"]])),
        document("休暇/規程 é", "leave", readers=["external:drive:42", "user:ann@example.com"]),
    ]


def test_what_is_exported_is_what_was_written(writer: IndexWriter) -> None:
    written = _odd_documents()
    writer.write(written)
    exported = list(writer.export())
    assert [_told(each) for each in exported] == [_told(each) for each in written]
    for before, after in zip(written, exported, strict=True):
        assert after.vectors.shape == before.vectors.shape
        assert after.vectors.dtype == np.float32
        assert np.linalg.norm(after.vectors, axis=1) == pytest.approx(1.0, abs=1e-6)
        assert (after.vectors * before.vectors).sum(axis=1) == pytest.approx(1.0, abs=1e-4)


def test_what_is_exported_can_be_written_and_is_the_same_there(
    index: Index, writer: IndexWriter
) -> None:
    """A second index is had by emptying the first: nothing of the old is left to be exported."""
    writer.write(_odd_documents())
    first, scanned = list(writer.export()), list(writer.scan())
    writer.write([Delete(each.document_id) for each in first])
    assert list(writer.export()) == []
    assert writer.write(first).stale == ()
    assert list(writer.scan()) == scanned
    for before, after in zip(first, writer.export(), strict=True):
        assert _told(before) == _told(after)
        assert np.array_equal(before.vectors, after.vectors)
    assert found(index, query("hidden nobody")) == []
    assert found(index, query("leave"), ANN) == ["休暇/規程 é"]


def test_an_export_follows_amendments_and_replacements(writer: IndexWriter) -> None:
    writer.write([document("a", "old words"), document("b", "gone"), document("c", "stays")])
    finance, chosen = Access.to(["group:finance"]), frozenset({"chosen"})
    writer.write([document("a", "new", "words", generation=2), Delete("b")])
    writer.write([Amend(document_id="c", access=finance, sets=chosen, boost=3.0, hidden=True)])
    a, c = writer.export()
    assert _told(a) == _told(document("a", "new", "words", generation=2))
    amended = document("c", "stays", access=finance, sets=chosen, boost=3.0, hidden=True)
    assert _told(c) == _told(amended)


def test_an_export_goes_on_after_an_id(writer: IndexWriter) -> None:
    names = [f"{n:04}" for n in range(1_100)]
    writer.write(document(name, name) for name in reversed(names))
    assert [each.document_id for each in writer.export()] == names
    assert [each.document_id for each in writer.export(after="1097")] == ["1098", "1099"]
    assert [each.document_id for each in writer.export(after="10975")] == ["1098", "1099"]
    assert list(writer.export(after="1099")) == []


def _wrong() -> Iterator[tuple[str, Replace]]:
    right = document("a", "one", "two")
    one, two = right.chunks
    nan = right.vectors.copy()
    nan[1, 0] = np.nan
    yield "no id", document("", "one")
    yield "id with NUL", document("a\0b", "one")
    yield "id that is not Unicode", document("a\ud800", "one")
    yield "fewer vectors", replace(right, vectors=right.vectors[:1])
    yield "dimension", replace(right, vectors=unit(right.vectors[:, :-1]))
    yield "length", replace(right, vectors=right.vectors * 1.1)
    yield "zero", replace(right, vectors=right.vectors * 0)
    yield "not a number", replace(right, vectors=nan)
    yield "another's chunk", replace(right, chunks=(one, replace(two, document_id="b")))
    yield "gap", replace(right, chunks=(one, replace(two, position=2)))
    yield "doubled", replace(right, chunks=(one, one))


@pytest.mark.parametrize(
    "wrong", [case for _, case in _wrong()], ids=[name for name, _ in _wrong()]
)
def test_what_cannot_be_right_is_refused(index: Index, writer: IndexWriter, wrong: Replace) -> None:
    writer.write([document("a", "former text")])
    with pytest.raises(ValueError, match=r"a|id"):
        writer.write([wrong])
    assert found(index, query("former one two")) == ["a"]
    assert writer.write([document("b", "one")]) == Written(replaced=1, chunks=1)


def test_a_query_vector_of_another_dimension_is_refused(index: Index) -> None:
    with pytest.raises(ValueError, match="dimension"):
        index.find([query("x", vector=vector("x", 7), alpha=0.5)], PUBLIC, soon())


IDS = [
    "folder:plain",
    "folder:with space/and/slashes.md",
    "folder:'quotes\" and `ticks`",
    "folder:100% [a-z]* {x} \\ ^$ | ? + ; -- DROP",
    "folder:日本語/規程　第１章.docx",
    "folder:Ünïcödé",
    "folder:U\u0308ni\u0308co\u0308de\u0301",
    "folder:עברית",
    "folder:🙂👩‍👩‍👧",
    "folder:tab\tand\nline",
    "folder:CASE",
    "folder:case",
    "folder: case ",
    "folder:" + "long/" * 3_000,
]


def test_ids_are_of_any_script(index: Index, writer: IndexWriter) -> None:
    writer.write(document(name, f"text number{n}", source=name) for n, name in enumerate(IDS))
    assert [known.id for known in writer.scan()] == sorted(IDS)
    for number, name in enumerate(IDS):
        assert found(index, query(f"number{number}")) == [name]
        only = Filters(document_ids=frozenset({name}))
        assert found(index, query("text", filters=only)) == [name]
        assert index.facets(Filters(sources=frozenset({name})), PUBLIC, soon()).sources == {name: 1}
        (part,) = index.chunks([ChunkRange(name, 0, 1)], PUBLIC, soon())
        assert [chunk.document_id for chunk in part] == [name]
    writer.write(Delete(name) for name in IDS[::2])
    assert [known.id for known in writer.scan()] == sorted(IDS[1::2])


@pytest.mark.parametrize(
    "text", ["\x00nul", "🙂" * 50, "w" * 70_000, "a\tb\r\nc\u2028d", "\ufeffbom", " "]
)
def test_texts_are_whatever_they_are(index: Index, writer: IndexWriter, text: str) -> None:
    writer.write([document("a", text, "findable")])
    assert [hit.chunk.document_id for hit in hits(index, query("findable"))] == ["a"]
    (part,) = index.chunks([ChunkRange("a", 0, 1)], PUBLIC, soon())
    assert [chunk.text for chunk in part] == [text]


def test_when_the_time_is_up_it_is_said(index: Index, writer: IndexWriter) -> None:
    writer.write([document("a", "text")])
    over = Deadline(time.monotonic() - 1.0)
    with pytest.raises(DeadlineExceededError):
        index.find([query("text")], PUBLIC, over)
    with pytest.raises(DeadlineExceededError):
        index.chunks([ChunkRange("a", 0, 1)], PUBLIC, over)
    with pytest.raises(DeadlineExceededError):
        index.facets(Filters(), PUBLIC, over)


# --- many at once


def test_what_was_opened_before_a_write_sees_it(engine: Engine) -> None:
    writer, index = engine.writer(), engine.index()
    assert found(index, query("late")) == []
    engine.writer().write([document("a", "late")])
    assert found(index, query("late")) == ["a"]
    assert [known.id for known in writer.scan()] == ["a"]
    assert found(engine.index(), query("late")) == ["a"]


@pytest.mark.soak("slow")
def test_a_document_is_never_absent_or_mixed_while_it_is_replaced(
    index: Index, engine: Engine, writer: IndexWriter
) -> None:
    writer.write([version("a", 1), document("other", "version of nothing")])
    other = threading.Thread(target=replace_again_and_again, args=(engine, "a", 24))
    other.start()
    seen: list[list[list[int]]] = []
    while other.is_alive():
        seen.append(generations_seen(index, "a"))
    other.join()
    assert all(is_whole(generations) for views in seen for generations in views)
    assert len({views[0][0] for views in seen}) > 3, (
        "the searches should have seen several versions"
    )
    assert {views[0] for views in generations_seen(index, "a")} == {25}


@pytest.mark.soak("slow")
def test_threads_share_an_index_and_writers_wait_for_each_other(engine: Engine) -> None:
    index = engine.index()
    engine.writer().write(version(f"{n}", 1) for n in range(3))
    writers = [
        threading.Thread(target=replace_again_and_again, args=(engine, f"{n}", 6)) for n in range(3)
    ]
    broken: list[list[int]] = []

    def search() -> None:
        while any(other.is_alive() for other in writers):
            for name in "012":
                broken.extend(g for g in generations_seen(index, name) if not is_whole(g))

    searchers = [threading.Thread(target=search) for _ in range(3)]
    for thread in writers + searchers:
        thread.start()
    for thread in writers + searchers:
        thread.join()
    assert broken == []
    assert [g[0] for name in "012" for g in generations_seen(index, name)] == [7] * 9


SPAWN = multiprocessing.get_context("spawn")


@pytest.mark.soak("slow")
def test_one_process_writes_while_another_reads(
    index: Index, engine: Engine, writer: IndexWriter
) -> None:
    writer.write([version("a", 1)])
    other = SPAWN.Process(target=replace_again_and_again, args=(engine, "a", 15))
    other.start()
    seen = []
    while other.is_alive():
        seen.append(generations_seen(index, "a"))
    other.join()
    assert other.exitcode == 0
    assert all(is_whole(generations) for views in seen for generations in views)
    assert {views[0] for views in generations_seen(index, "a")} == {16}


@pytest.mark.soak("slow")
@pytest.mark.deep("engines")
def test_a_killed_writer_leaves_nothing_half(engine: Engine, tmp_path: Path) -> None:
    log, rng = tmp_path / "log", random.Random(7)
    before = engine.index()
    for _ in range(KILLS):
        # What was under way is done again: every change may be.
        first = _number(log, "done") + 1
        other = SPAWN.Process(target=write_until_killed, args=(engine, log, first))
        other.start()
        last = first + rng.randrange(8)
        while _number(log, "done") < last:
            time.sleep(0.002)
            assert other.is_alive()
        time.sleep(rng.uniform(0.0, 0.04))
        other.kill()
        other.join()
        for index in (before, engine.index()):
            _check_after_kill(index, engine.writer(), log)
    assert _number(log, "done") >= KILLS


def _number(log: Path, what: str) -> int:
    """The last number that the writer noted as `begun` or `done`."""
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    return max((int(line.split()[1]) for line in lines if line.startswith(what)), default=-1)


def _check_after_kill(index: Index, writer: IndexWriter, log: Path) -> None:
    """Every document is as its last acknowledged change left it, or as the change under way would."""
    known = {document.id: document for document in writer.scan()}
    done, begun = _number(log, "done"), _number(log, "begun")
    for name in {step(number)[0] for number in range(done + 1)}:
        numbers = [n for n in range(done + 1) if step(n)[0] == name]
        allowed = [_expected(numbers)]
        if begun > done and step(begun)[0] == name:
            allowed.append(_expected([*numbers, begun]))
        # The words, the vectors and the chunks. A cluster may still carry out what the killed process sent,
        # between one look and the next; what is half stays so.
        whole: list[list[list[int]]] = [
            [sorted([g] * (2 + g % 5))] * 3 if g is not None else [[]] * 3 for g, _ in allowed
        ]
        end = time.monotonic() + 30
        while (shown := generations_seen(index, name)) not in whole:
            assert time.monotonic() < end, (shown, whole)
        assert (known[name].generation if name in known else None) in [kept for _, kept in allowed]


def _expected(numbers: list[int]) -> tuple[int | None, int | None]:
    """The generation that everybody sees, and that the index holds, after these changes."""
    seen: int | None = None
    kept: int | None = None
    for number in numbers:
        match step(number)[1]:
            case Replace(generation=generation):
                seen = kept = generation
            case Delete():
                seen = kept = None
            case Amend(access=access):
                seen = kept if access == EVERYBODY else None
    return seen, kept


AUDIENCES = scaled(40, 1_000, "engines")


@pytest.mark.deep("engines")
def test_with_an_audience_exactly_what_all_of_them_may_read_is_found(engine: Engine) -> None:
    """Searched, opened, counted and spelled: for random readers of documents, and random people who look together."""
    drawn = random.Random(7)
    tokens = ["public", *(f"group:{name}" for name in "abcde")]
    documents = [
        document(f"d{number}", f"shared own{number}x", readers=drawn.sample(tokens, number % 4))
        for number in range(24)
    ]
    engine.writer().write(documents)
    index = engine.index()
    ids = [one.document_id for one in documents]
    access = {one.document_id: one.chunks[0].access for one in documents}
    for _ in range(AUDIENCES):
        people = [Readers(frozenset(drawn.sample(tokens, drawn.randrange(1, 5)))) for _ in range(4)]
        together = people[0].shown_to(people[1 : drawn.randrange(1, 5)])
        right = {one for one in ids if may_read(together, access[one])}
        asked = query("shared", vector=vector("shared"), alpha=0.5)
        assert set(found(index, asked, together)) == right
        exact = query("own3x", alpha=0.0, vector=None, exact=("own3x",))
        assert set(found(index, exact, together)) == right & {"d3"}
        chunks = index.chunks([ChunkRange(one, 0, 1) for one in ids], together, soon())
        assert {one for one, found in zip(ids, chunks, strict=True) if found} == right
        facets = index.facets(Filters(), together, soon())
        assert sum(facets.sources.values()) == len(right)


def test_words_are_corrected_to_those_that_the_whole_audience_may_read(engine: Engine) -> None:
    engine.writer().write(
        [
            document("a", "the quarterly calibration", readers=["group:a"]),
            document("both", "the quarterly inspection", readers=["group:a", "group:b"]),
        ]
    )
    index, ann = engine.index(), Readers.of("group:a")
    together = ann.shown_to([Readers.of("group:b")])
    asked = spelling_query("calibratoin inspectoin")

    def corrected(readers: Readers) -> set[str]:
        found = index.suggest_corrections(asked, readers, soon())
        return {one for words in found.values() for one in words}

    assert corrected(ann) == {"calibration", "inspection"}
    assert corrected(together) == {"inspection"}


@pytest.mark.soak("slow")
@pytest.mark.deep("engines")
def test_among_many_chunks_a_reader_of_few_finds_theirs(engine: Engine) -> None:
    """One document in a tenth of all is for the few: the rest must be passed over, not counted."""
    quick = with_sparse_graph(engine)
    index, writer = quick.index(), quick.writer()
    rng = np.random.default_rng(3)
    base = unit(rng.standard_normal((100, DIMENSION)))
    every = MANY_DOCUMENTS // 10

    def around(n: int) -> Vectors:
        return unit(base + 0.5 * vector(f"document {n}"))

    def corpus() -> Iterator[Replace]:
        for n in range(MANY_DOCUMENTS):
            texts = [f"chunk{n}x{place} of report{n} and everything" for place in range(100)]
            readers = ["group:few"] if n % every == 0 else ["group:many"]
            yield document(f"{n:04}", *texts, readers=readers, vectors_of=around(n))

    chunks = 100 * MANY_DOCUMENTS
    assert writer.write(corpus()) == Written(replaced=MANY_DOCUMENTS, chunks=chunks)
    many, few = Readers.of("group:many"), Readers.of("group:few")
    assert [hit.chunk.key for hit in hits(index, query("chunk77x42"), many)] == [("0077", 42)]
    assert len(hits(index, query("everything", size=200), few)) == 200
    own = around(5 * every)[7]
    (nearest, *_) = hits(index, query("", vector=own, alpha=1.0), few)
    assert nearest.chunk.key == (f"{5 * every:04}", 7)
    assert index.facets(Filters(), few, soon()).sources == {"folder": 10}
    assert sum(known.chunks for known in writer.scan()) == chunks
    writer.write(Delete(f"{n:04}") for n in range(5 * every))
    assert found(index, query(f"chunk{4 * every}x0"), few) == []
    assert index.facets(Filters(), few, soon()).sources == {"folder": 5}
