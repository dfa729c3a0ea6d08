"""Read sentences that their documents bear out, written by people, from public data.

- XQuAD (Artetxe et al., 2020): sentences of its paragraphs, and its questions made into statements.
- MTRAG (Katsis et al., 2025): sentences of its passages, and of the answers that people wrote from them.
- SciFact (Wadden et al., 2020): claims, which people wrote in other words than the abstracts.
- EnterpriseRAG-Bench: the facts of its answers, from documents in the shape of nine sources.
- Handbooks of companies: sentences under headings, and rows of tables.
"""

import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connectors.access import EVERYBODY
from connectors.document import Document, Place, Section
from connectors.extraction.registry import extract
from connectors.extraction.result import ExtractionError
from indexing.chunking.chunk import Chunk, split_sentences
from indexing.chunking.chunker import chunk_document
from indexing.embedding.embedder import Embedder

WORDS_OF_A_STATEMENT = range(6, 45)
HANDBOOKS = 1_000
_SPEAKER = re.compile(r"(?m)^([A-Z][\w.-]+(?: [A-Z][\w.-]+)?): (.+)$")
_NO_CLAIM = re.compile(
    r"\b(?:documents?|passages?|contexts?|information provided|I|me|my|you)\b|\?$|:$|^(?:Yes|No|However)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"[|#*`<>{}\[\]=]|https?:|\.\.\.|\(")


@dataclass(frozen=True, slots=True)
class Statement:
    """A true sentence, and the chunks of the document that says it."""

    text: str
    chunks: tuple[Chunk, ...]
    origin: str
    verbatim: bool

    @property
    def document(self) -> str:
        return self.chunks[0].document_id


@dataclass(frozen=True, slots=True)
class Source:
    """Where the data lies, and what cuts documents."""

    data: Path
    embedder: Embedder

    def rows(self, path: str) -> Iterator[dict[str, Any]]:
        file = self.data / path
        text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        return map(json.loads, text.decode("utf-8").rstrip("\n").split("\n"))

    def cut(self, name: str, title: str, *sections: Section) -> tuple[Chunk, ...]:
        return tuple(chunk_document(_document(name, title, *sections), self.embedder))


def _document(name: str, title: str, *sections: Section) -> Document:
    return Document(
        id=name,
        source="benchmark",
        title=title,
        sections=sections,
        link=f"benchmark:{name}",
        media_type="text/markdown",
        access=EVERYBODY,
        version="1",
    )


def draw(*name: str) -> int:
    """Return a number that depends on the name alone."""
    return int.from_bytes(hashlib.blake2b("\n".join(name).encode(), digest_size=8).digest())


def sentences(text: str) -> list[str]:
    """Return the sentences of running text that state something by themselves."""
    found = [" ".join(span.of(text).split()) for span in split_sentences(text)]
    return [one for one in found if _is_statement(one)]


def _is_statement(sentence: str) -> bool:
    count = len(sentence.split())
    return (
        count in WORDS_OF_A_STATEMENT
        and sentence[0].isupper()
        and sentence.endswith(".")
        and _ASIDE.search(sentence) is None
    )


def read_xquad(source: Source, language: str) -> Iterator[Statement]:
    """Yield the sentences of the paragraphs of one language."""
    for row in source.rows("xquad/corpus.jsonl.gz"):
        if row["metadata"]["lang"] == language:
            chunks = source.cut(f"xquad:{row['_id']}", "", Section(text=row["text"]))
            spans = split_sentences(row["text"])
            for text in (span.of(row["text"]) for span in spans if span.end - span.start > 12):
                if language != "en" or _is_statement(text):
                    yield Statement(text, chunks, f"xquad-{language}", verbatim=True)


def read_xquad_answers(source: Source) -> Iterator[Statement]:
    """Yield its English questions with their answers in the place of the question word."""
    texts = {
        row["metadata"]["paragraph"]: row["text"]
        for row in source.rows("xquad/corpus.jsonl.gz")
        if row["metadata"]["lang"] == "en"
    }
    for row in source.rows("xquad/queries.jsonl"):
        facts = row["metadata"]
        if facts["lang"] != "en":
            continue
        if text := _answered(row["text"], facts["answers"][0]):
            number = facts["paragraph"]
            chunks = source.cut(f"xquad:en-p{number:03}", "", Section(text=texts[number]))
            yield Statement(text, chunks, "xquad-en", verbatim=False)


_QUESTIONS = (
    (re.compile(r"^Who ((?!(?:did|do|does|else)\b)\w+ .+)\?$"), "{answer} {0}."),
    (
        re.compile(
            r"^What ((?:is|was|were|are|has|had|caused|led|happened|became|makes|helps) .+)\?$"
        ),
        "{answer} {0}.",
    ),
    (
        re.compile(
            r"^(?:Which|What) ([a-z]\w+(?: [a-z]+)?) ((?:was|is|were|are|has|had|won|made|led|held) .+)\?$"
        ),
        "The {0} that {1} is {answer}.",
    ),
    (
        re.compile(
            r"^How many ((?:(?!did|do|does|are|were|is|was|have|has|can)\w+ )+(?:in|of|live|were|are|have) .+)\?$"
        ),
        "{answer} {0}.",
    ),
    (
        re.compile(r"^(?:Where|When) (is|was|were) (.+) (\w+ed|born|built|held|found)\?$"),
        "{1} {0} {2} in {answer}.",
    ),
)


def _answered(question: str, answer: str) -> str | None:
    for pattern, statement in _QUESTIONS:
        if found := pattern.match(question):
            text = statement.format(*found.groups(), answer=answer)
            return text[0].upper() + text[1:]
    return None


def read_mtrag_passages(source: Source, passages: dict[str, dict[str, Any]]) -> Iterator[Statement]:
    """Yield the sentences of the passages that bear an answer."""
    for name, row in passages.items():
        chunks = source.cut(f"mtrag:{name}", row["title"], Section(text=row["text"]))
        for text in sentences(row["text"]):
            yield Statement(text, chunks, "mtrag", verbatim=True)


def read_mtrag_answers(source: Source, passages: dict[str, dict[str, Any]]) -> Iterator[Statement]:
    """Yield the sentences that people wrote, cited to the passages that they had before them."""
    for task in source.rows("mtrag/tasks.jsonl"):
        gold = [passages[name] for name in task["gold_passages"] if name in passages]
        if task["answerability"] != "ANSWERABLE" or not gold:
            continue
        sections = [
            Section(text=row["text"], place=Place(heading_path=(row["title"] or "Text",)))
            for row in gold
        ]
        chunks = source.cut(f"mtrag:{task['conversation_id']}", gold[0]["title"], *sections)
        for text in sentences(task["reference_answer"]):
            if not _NO_CLAIM.search(text):
                yield Statement(text, chunks, "mtrag", verbatim=False)


def gold_passages(source: Source) -> dict[str, dict[str, Any]]:
    """Return the passages of MTRAG that bear an answer, by id."""
    wanted = {name for task in source.rows("mtrag/tasks.jsonl") for name in task["gold_passages"]}
    return {row["_id"]: row for row in source.rows("mtrag/corpus.jsonl.gz") if row["_id"] in wanted}


def read_scifact(source: Source, label: str) -> Iterator[Statement]:
    """Yield claims with the abstract that supports (`SUPPORT`) or contradicts (`CONTRADICT`) them."""
    corpus = {row["_id"]: row for row in source.rows("scifact/corpus.jsonl.gz")}
    for row in source.rows("scifact/queries.jsonl"):
        for name, verdict in row["metadata"]["evidence"].items():
            if verdict == label:
                found = corpus[name]
                chunks = source.cut(f"scifact:{name}", found["title"], Section(text=found["text"]))
                text = row["text"].rstrip(".") + "."
                yield Statement(text, chunks, "scifact", verbatim=False)


def read_enterprise_facts(source: Source) -> Iterator[Statement]:
    corpus = _enterprise_corpus(source)
    for row in source.rows("enterprise-rag-bench/questions.jsonl"):
        names = row["expected_doc_ids"]
        if len(names) == 1 and names[0] in corpus:
            for fact in (
                one for one in row["answer_facts"] if not one.startswith("The answer must")
            ):
                text = fact.rstrip(".") + "."
                yield Statement(text, corpus[names[0]], "enterprise", verbatim=False)


def read_speakers(source: Source) -> Iterator[tuple[Statement, tuple[str, ...]]]:
    """Yield what a message says as the words of its author, and the other authors of its thread."""
    for chunks in _enterprise_corpus(source).values():
        said = [(*found.groups(),) for chunk in chunks for found in _SPEAKER.finditer(chunk.text)]
        authors = tuple(dict.fromkeys(name for name, _ in said))
        for author, text in said:
            others = tuple(name for name in authors if name != author)
            first = text.split(". ")[0].rstrip(".")
            if others and len(first.split()) > 5 and not _ASIDE.search(first):
                statement = Statement(
                    f"{author} said: {first}.", chunks, "enterprise", verbatim=False
                )
                yield statement, others


def _enterprise_corpus(source: Source) -> dict[str, tuple[Chunk, ...]]:
    return {
        row["_id"]: source.cut(f"enterprise:{row['_id']}", row["title"], Section(text=row["text"]))
        for row in source.rows("enterprise-rag-bench/corpus.jsonl.gz")
    }


def read_handbooks(source: Source) -> Iterator[tuple[str, tuple[Section, ...], str]]:
    """Yield name, sections and title of the handbook pages that have headings, drawn by their ids."""
    rows = sorted(
        source.rows("kb-company-handbooks/corpus.jsonl.gz"), key=lambda row: draw(row["_id"])
    )
    for row in [row for row in rows if row["_id"].endswith(".md")][:HANDBOOKS]:
        with suppress(ExtractionError):  # a page without text
            found = extract(row["text"].encode(), "text/markdown").sections
            yield f"handbook:{row['_id']}", found, row["title"]
