"""The models of `backend.chat.extractive.candidate_scoring`, fitted anew, and how well they know what answers.

    .venv/bin/python -m tests.benchmarks.answerability [--data ../shared/data] [--questions N] [--languages en zh] [--mtrag]

Each question is asked of a collection as it is, and again of all but the passages that answer it, through the
search and the scoring of the product. Where the passage is there, declining is wrong; where it was taken away, answering
is. Many of the passages that are left are about the very matter.

- XQuAD (Artetxe et al., 2020): its English questions fit `BY_MEANING`, its Chinese ones, with an embedder that has
  no vote, `BY_WORDS`.
- MTRAG (Katsis et al., 2025), whose questions were not written with a passage in view, has no part in a fit: what
  comes of it is an estimate for other documents.

A model is fitted on the questions of one half of the paragraphs, its threshold set where it declines the named share of
those without their paragraph, and judged on the other half; and the other way round. The curve shows what other thresholds would do
there. The line of a model is fitted on all questions, and is what the module has, rounded. The indexes are kept in
`.cache/benchmarks`; the first run takes some minutes to make them. Each question that was asked is kept there as well, by the
code that it was asked of, so that a run that was stopped goes on where it was.
"""

import argparse
import gzip
import hashlib
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.chat.extractive.answer import extract_answer
from backend.chat.extractive.candidate_scoring import (
    BY_MEANING,
    BY_WORDS,
    AnswerabilityModel,
    AnswerEvidence,
    score_candidates,
)
from backend.chat.extractive.candidate_sentences import find_candidates
from backend.evaluation.dataset import read_dataset
from backend.search.events import SearchDone
from backend.search.models import Budgets, DocumentNumbers, InferenceSection, SearchRequest
from backend.search.search_tool import SearchTool
from connectors.access import EVERYBODY, Readers
from connectors.document import Document, Section
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.chunking.chunker import chunk_document, compute_content_hash
from indexing.embedding.embedder import Embedder, EmbedderIdentity, Vector, Vectors
from indexing.embedding.language_support import LanguageSupport, load_language_support
from indexing.embedding.token_counting import rough_tokens
from indexing.index.protocols import Facets, Filters, Found, IndexQuery, Replace
from indexing.index.spelling import Corrections, SpellingQuery
from indexing.local import LocalIndex, open_index, open_writer
from indexing.runtime.deadline import Deadline
from tests.support.models import MODEL_CACHE, minilm

QUESTIONS = 1_000
DECLINED = {"BY_MEANING": 0.66, "BY_WORDS": 0.56}
"""Of the questions without their passage, by each model; what it chooses is its threshold."""
CURVE = (0.4, 0.5, 0.6, 0.65, 0.7, 0.8)
EVERY = 7
"""Of the passages of MTRAG that answer nothing, every so-manieth is there."""
RIDGE = 1.0
"""On coefficients of standardised figures."""
WINDOW = 32_000
NO_VOTE = LanguageSupport({})
ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".cache" / "benchmarks"

Figures = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    passages: frozenset[str]
    """That answer it."""
    answers: tuple[str, ...]
    """A right sentence holds one of them; where there are none, any of such a passage is right."""


@dataclass(frozen=True, slots=True)
class Collection:
    name: str
    passages: tuple[Document, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """What came of one question, asked once."""

    half: int
    """Of its paragraphs: 0 or 1."""
    answerable: bool
    evidence: AnswerEvidence
    answered: bool
    """Whether the product answers, by all its rules."""


@dataclass(frozen=True, slots=True)
class Remembering:
    """An embedder that embeds each question and sentence once: nearly all come again."""

    embedder: Embedder
    known: dict[str, Vector] = field(default_factory=dict)

    @property
    def identity(self) -> EmbedderIdentity:
        return self.embedder.identity

    @property
    def max_tokens(self) -> int:
        return self.embedder.max_tokens

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self.embedder.count_tokens(texts)

    def token_ends(self, text: str) -> Sequence[int]:
        return self.embedder.token_ends(text)

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        if new:
            self.known.update(zip(new, self.embedder.embed_queries(new, deadline), strict=True))
        return np.array([self.known[text] for text in texts])

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return self.embedder.embed_passages(texts)


@cache
def embedder() -> Remembering:
    return Remembering(minilm())


@dataclass(frozen=True, slots=True)
class Without:
    """An index that hides some documents."""

    index: LocalIndex
    hidden: frozenset[str]

    def find(self, queries: Sequence[IndexQuery], readers: Readers, deadline: Deadline) -> Found:
        more = [replace(query, size=query.size + 10) for query in queries]
        found = self.index.find(more, readers, deadline)
        return Found(
            tuple(
                tuple(hit for hit in ranking if hit.chunk.document_id not in self.hidden)[
                    : query.size
                ]
                for query, ranking in zip(queries, found.rankings, strict=True)
            )
        )

    def chunks(
        self, ranges: Sequence[ChunkRange], readers: Readers, deadline: Deadline
    ) -> list[list[Chunk]]:
        return self.index.chunks(ranges, readers, deadline)

    def facets(self, filters: Filters, readers: Readers, deadline: Deadline) -> Facets:
        return self.index.facets(filters, readers, deadline)

    def suggest_corrections(
        self, query: SpellingQuery, readers: Readers, deadline: Deadline
    ) -> Corrections:
        return self.index.suggest_corrections(query, readers, deadline)


def xquad(data: Path, language: str, questions: int) -> Collection:
    """Its paragraphs and questions of one language, the questions drawn by a hash of their ids."""
    folder = data / "xquad"
    passages = [row for row in rows(folder / "corpus.jsonl.gz") if of(row, language)]
    asked = [row for row in rows(folder / "queries.jsonl") if of(row, language)]
    judged = read_dataset(folder).judgments
    return Collection(
        f"xquad-{language}",
        tuple(document(row["_id"], row["title"], row["text"]) for row in passages),
        tuple(
            Question(row["text"], frozenset(judged[row["_id"]]), tuple(row["metadata"]["answers"]))
            for row in sorted(asked, key=lambda row: drawn(row["_id"]))[:questions]
        ),
    )


def mtrag(data: Path, questions: int) -> Collection:
    dataset = read_dataset(data / "mtrag")
    right = {query: frozenset(graded) for query, graded in dataset.judgments.items()}
    kept = frozenset[str]().union(*right.values())
    return Collection(
        "mtrag",
        tuple(
            document(passage.id, passage.title, passage.text)
            for passage in dataset.passages()
            if passage.id in kept or drawn(passage.id) % EVERY == 0
        ),
        tuple(
            Question(query.text, right[query.id], ())
            for query in sorted(dataset.queries, key=lambda query: drawn(query.id))[:questions]
        ),
    )


def rows(path: Path) -> Iterator[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return map(json.loads, text.decode("utf-8").splitlines())


def of(row: dict[str, Any], language: str) -> bool:
    return bool(row["metadata"]["lang"] == language)


def drawn(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())


def document(name: str, title: str, text: str) -> Document:
    return Document(
        id=name,
        source="benchmark",
        title=title,
        sections=(Section(text=text or title),),
        link=f"benchmark:{name}",
        media_type="text/plain",
        access=EVERYBODY,
        version="1",
    )


def index_of(collection: Collection) -> LocalIndex:
    """Kept by the name of the collection; made if it is not there, or was not finished."""
    folder = KEPT / f"answerability-{collection.name}-{len(collection.passages)}"
    if not folder.is_dir():
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        writer = open_writer(unfinished, minilm().identity)
        writer.write(map(whole, collection.passages))
        unfinished.rename(folder)
    return open_index(folder, minilm().identity)


def whole(passage: Document) -> Replace:
    chunks = chunk_document(passage, minilm())
    return Replace(
        document_id=passage.id,
        generation=1,
        content_hash=compute_content_hash(passage),
        chunks=tuple(chunks),
        vectors=minilm().embed_passages([chunk.embedded_text for chunk in chunks]),
    )


def samples(collection: Collection, understanding: LanguageSupport) -> list[Sample]:
    """Ask each question with its passages and without, and keep what comes of it, two lines each."""
    kind = "meaning" if understanding.measured else "words"
    kept = KEPT / f"answerability-{collection.name}-{kind}-{code_digest()}.jsonl"
    known = {row.pop("question"): row for row in kept_rows(kept)}
    with closing(index_of(collection)) as index, kept.open("a") as lines:
        for number, question in enumerate(collection.questions):
            print(
                f"\r{collection.name}: {number} of {len(collection.questions)}",
                end="",
                file=sys.stderr,
            )
            if question.text not in known:
                asked = [
                    asdict(sample(question, Without(index, hidden), understanding))
                    for hidden in (frozenset[str](), question.passages)
                ]
                known[question.text] = {"asked": asked}
                print(
                    json.dumps({"question": question.text, "asked": asked}), file=lines, flush=True
                )
    print(file=sys.stderr)
    return [
        Sample(**{**row, "evidence": AnswerEvidence(**row["evidence"])})
        for question in collection.questions
        for row in known[question.text]["asked"]
    ]


def kept_rows(path: Path) -> list[dict[str, Any]]:
    return list(rows(path)) if path.is_file() else []


@cache
def code_digest() -> str:
    """Of all that decides on an answer: search, index, and answers without a model."""
    folders = ("backend/search", "backend/chat/extractive", "indexing")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return hashlib.blake2b(
        b"".join(path.read_bytes() for path in sorted(files)), digest_size=6
    ).hexdigest()


def sample(question: Question, index: Without, understanding: LanguageSupport) -> Sample:
    read = sections(question.text, index, understanding)
    found = find_candidates(read)
    half = drawn(min(question.passages).partition("-")[2]) % 2
    if not found:
        return Sample(
            half, not index.hidden, AnswerEvidence(margin=0.0, missing_share=1.0), answered=False
        )
    deadline = Deadline.after(600)
    scored = score_candidates(question.text, found, embedder(), understanding, deadline)
    answer = extract_answer(question.text, read, embedder(), understanding, deadline)
    return Sample(half, not index.hidden, scored.evidence, answered=bool(answer.sentences))


def sections(
    question: str, index: Without, understanding: LanguageSupport
) -> tuple[InferenceSection, ...]:
    tool = SearchTool(
        index=index,
        embedder=embedder(),
        understanding=understanding,
        count_tokens=rough_tokens,
        complete=None,
        numbers=DocumentNumbers(),
    )
    request = SearchRequest(
        message=question,
        readers=Readers.of(),
        deadline=Deadline.after(600),
        budgets=Budgets.for_window(WINDOW),
    )
    *_, done = tool.run(request)
    assert isinstance(done, SearchDone), "the last event of a search is its result"
    return done.result.sections


def figures_of(model: AnswerabilityModel) -> list[str]:
    """The names of the figures that a model uses."""
    names = [each.name for each in fields(AnswerEvidence)]
    return [name for name in names if getattr(model, name)]


def fitted(
    model: AnswerabilityModel, found: Sequence[Sample], declined: float
) -> AnswerabilityModel:
    """The model with the coefficients of these samples, and the threshold that declines this share.

    Logistic regression by Newton's method: answerable and not weigh alike, the figures are standardised, and a
    ridge lies on all coefficients but the intercept.
    """
    names = figures_of(model)
    figures = np.array([[getattr(each.evidence, name) for name in names] for each in found])
    means, spread = figures.mean(axis=0), figures.std(axis=0)
    answerable = np.array([each.answerable for each in found], dtype=np.float64)
    slopes = regression((figures - means) / spread, answerable)[1:] / spread
    threshold = float(np.quantile((figures @ slopes)[answerable == 0], declined))
    found_slopes = {name: round(float(slope), 2) for name, slope in zip(names, slopes, strict=True)}
    return replace(model, intercept=round(-threshold, 2), **found_slopes)


def regression(figures: Figures, right: Figures) -> Figures:
    """Intercept and slopes, shape (1 + columns,)."""
    design = np.column_stack([np.ones(len(figures)), figures])
    weights = np.where(right == 1, 0.5 / right.mean(), 0.5 / (1 - right.mean()))
    ridge = RIDGE * np.diag([0.0, *np.ones(figures.shape[1])])
    slopes = np.zeros(design.shape[1])
    for _ in range(30):
        probability = 1 / (1 + np.exp(-design @ slopes))
        gradient = design.T @ (weights * (probability - right)) + ridge @ slopes
        curvature = (design.T * (weights * probability * (1 - probability))) @ design + ridge
        slopes = slopes - np.linalg.solve(curvature, gradient)
    return slopes


def report(name: str, model: AnswerabilityModel, found: Sequence[Sample]) -> None:
    odds = np.array([model.log_odds(each.evidence) for each in found])
    answerable = np.array([each.answerable for each in found])
    right, wrong = odds[answerable], odds[~answerable]
    curve = " | ".join(f"{(right < np.quantile(wrong, share)).mean():.1%}" for share in CURVE)
    print(
        f"| {name} | {len(found)} | {auc(odds, answerable):.3f} | {(wrong < 0).mean():.1%} |"
        f" {(right < 0).mean():.1%} | {curve} |"
    )


def report_rules(name: str, found: Sequence[Sample]) -> None:
    """What the product does as it stands, its rules on years, names and codes included."""
    reported = {
        kind: [each.answered for each in found if each.answerable is kind] for kind in (True, False)
    }
    print(
        f"{name}, as the product is: {1 - np.mean(reported[False]):.1%} declined without their passage,"
        f" {1 - np.mean(reported[True]):.1%} with it"
    )


def auc(probability: Figures, right: NDArray[np.bool_]) -> float:
    """How often a right sentence is given more than a wrong one."""
    of_right, of_wrong = probability[right][:, None], probability[~right][None]
    return float(((of_right > of_wrong) + 0.5 * (of_right == of_wrong)).mean())


def line(name: str, model: AnswerabilityModel) -> str:
    slopes = ", ".join(f"{each}={getattr(model, each)}" for each in figures_of(model))
    return f"{name} = AnswerabilityModel(intercept={model.intercept}, {slopes}, typical={model.typical})"


def report_with_foreign(
    name: str, model: AnswerabilityModel, found: Sequence[Sample], foreign: Sequence[Sample]
) -> None:
    """Fit on each half and report on the other, and on what is foreign."""
    declined = DECLINED[name]
    print(f"\n{line(name, fitted(model, found, declined))}")
    print(f"module: {line(name, model)}\n")
    shares = " | ".join(f"at {share:.0%}" for share in CURVE)
    print(f"| judged on | asked | AUC | declined without | declined with | {shares} |")
    print("|---" * (5 + len(CURVE)) + "|")
    for half in (0, 1):
        seen = [each for each in found if each.half != half]
        unseen = [each for each in found if each.half == half]
        report(f"half {half + 1}, fitted on the other", fitted(model, seen, declined), unseen)
    report("all, as the module has it", model, found)
    if foreign:
        report("MTRAG, as the module has it", model, foreign)
    report_rules(name, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--languages", nargs="+", choices=("en", "zh"), default=("en", "zh"))
    parser.add_argument("--mtrag", action="store_true", help="judge on MTRAG, too")
    arguments = parser.parse_args()
    data, count = arguments.data, arguments.questions
    understood = load_language_support(minilm(), MODEL_CACHE)
    foreign = mtrag(data, count) if arguments.mtrag else None
    for name, model, language, understanding in (
        ("BY_MEANING", BY_MEANING, "en", understood),
        ("BY_WORDS", BY_WORDS, "zh", NO_VOTE),
    ):
        if language not in arguments.languages:
            continue
        found = samples(xquad(data, language, count), understanding)
        report_with_foreign(name, model, found, samples(foreign, understanding) if foreign else [])


if __name__ == "__main__":
    main()
