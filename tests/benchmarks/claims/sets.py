"""Make claims of known truth in kinds: what documents bear out, and what they do not.

    .venv/bin/python -m tests.benchmarks.claims.sets [--data ../shared/data]

prints the kinds with their counts, and an example of each. All chance is drawn by names, so that every
run makes the same claims. A document belongs to one half: rules are fitted on the claims of the one and
judged on those of the other.
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice, pairwise, zip_longest
from pathlib import Path
from random import Random

from connectors.document import Section
from indexing.chunking.chunk import Chunk
from tests.benchmarks.claims import changes, statements
from tests.benchmarks.claims.changes import Change, Material
from tests.benchmarks.claims.rewordings import reword
from tests.benchmarks.claims.statements import Source, Statement, draw
from tests.support.models import minilm

SIMPLE = ("number", "date", "name", "other passage", "negation", "half supported")
"""Kinds that a check must nearly always flag."""
CHANGES: Mapping[str, Change] = {
    "number": changes.change_number,
    "date": changes.change_date,
    "name": changes.change_name,
    "negation": changes.negate,
    "half supported": changes.support_half,
    "unit": changes.change_unit,
    "another number of the document": changes.change_number_to_another,
    "ordinal": changes.change_ordinal,
    "share": changes.change_share,
    "opposite": changes.change_to_the_opposite,
    "swapped names": changes.swap_names,
    "name that begins": changes.change_first_name,
    "appended clause": changes.append_clause,
}
LANGUAGES = ("de", "es", "ru", "zh")
_RELATIVE = re.compile(r", (?:which|who|where|because|although) [^,.;]{15,80}(?=\.$)")


@dataclass(frozen=True, slots=True)
class Claim:
    text: str
    kind: str
    is_true: bool
    is_verbatim: bool
    """Whether it, or what was changed, stands in the document word for word."""
    origin: str
    chunks: tuple[Chunk, ...]

    @property
    def half(self) -> int:
        return draw("half", self.chunks[0].document_id) % 2


def make_claims(source: Source, count: int) -> list[Claim]:
    """Return at most `count` claims of each kind, of both halves together."""
    people, verbatim = _written_by_people(source), _verbatim(source)
    by_kind = chain(
        [_as_claims("verbatim", verbatim)],
        [_as_claims(f"written by people, {origin}", people[origin]) for origin in people],
        [_reworded(verbatim), _joined(verbatim)],
        [_in_language(source, language) for language in LANGUAGES],
        _of_rows(source),
        _of_headings(source),
        _of_speakers(source),
        [_as_false("contradicted abstract", list(statements.read_scifact(source, "CONTRADICT")))],
        _false_kinds(verbatim, people),
    )
    return [claim for made in by_kind for claim in _take(made, count)]


def _take(made: Iterable[Claim], count: int) -> Iterator[Claim]:
    """The first of each half."""
    kept = list(made)
    for half in (0, 1):
        yield from islice((claim for claim in kept if claim.half == half), count // 2)


def _shuffled(found: Iterable[Statement]) -> list[Statement]:
    return sorted(found, key=lambda one: draw(one.document, one.text))


def _verbatim(source: Source) -> list[Statement]:
    gold = statements.gold_passages(source)
    xquad = _shuffled(statements.read_xquad(source, "en"))
    mtrag = _shuffled(islice(statements.read_mtrag_passages(source, gold), 3000))
    return [one for pair in zip_longest(xquad, mtrag) for one in pair if one]


def _written_by_people(source: Source) -> dict[str, list[Statement]]:
    gold = statements.gold_passages(source)
    found = chain(
        statements.read_mtrag_answers(source, gold),
        statements.read_scifact(source, "SUPPORT"),
        statements.read_enterprise_facts(source),
        statements.read_xquad_answers(source),
    )
    by_origin: dict[str, list[Statement]] = {}
    for one in _shuffled(found):
        by_origin.setdefault(one.origin, []).append(one)
    return by_origin


def _claim(kind: str, statement: Statement, text: str = "", *, is_true: bool) -> Claim:
    return Claim(
        text or statement.text,
        kind,
        is_true,
        statement.verbatim,
        statement.origin,
        statement.chunks,
    )


def _as_claims(kind: str, found: Iterable[Statement]) -> Iterator[Claim]:
    return (_claim(kind, one, is_true=True) for one in found)


def _as_false(kind: str, found: Iterable[Statement]) -> Iterator[Claim]:
    return (_claim(kind, one, is_true=False) for one in found)


def _in_language(source: Source, language: str) -> Iterator[Claim]:
    return _as_claims(
        f"verbatim, {language}", islice(statements.read_xquad(source, language), 0, None, 7)
    )


def _reworded(found: Sequence[Statement]) -> Iterator[Claim]:
    for one in found:
        if text := reword(one.text, Random(draw("reworded", one.text))):
            yield replace(_claim("reworded", one, text, is_true=True), is_verbatim=False)


def _joined(found: Sequence[Statement]) -> Iterator[Claim]:
    """Two sentences of one section as one."""
    waiting: dict[str, Statement] = {}
    for one in found:
        other = waiting.pop(one.document, None)
        if other is None:
            waiting[one.document] = one
        elif len(f"{one.text} {other.text}".split()) < 40:
            lower = one.text if one.text[1].isupper() else one.text[0].lower() + one.text[1:]
            joint = (" and ", "; ", ", and ", ", while ")[draw(one.text) % 4]
            joined = f"{other.text.rstrip('.')}{joint}{lower}"
            yield replace(_claim("joined", one, joined, is_true=True), is_verbatim=False)


def _false_kinds(
    verbatim: Sequence[Statement], people: Mapping[str, Sequence[Statement]]
) -> Iterator[Iterable[Claim]]:
    """Changes of sentences that stand in the document, and as often of those that people wrote."""
    written = _shuffled(chain.from_iterable(people.values()))
    turns = [one for pair in zip_longest(verbatim, written) for one in pair if one]
    pool = _pool(verbatim)
    for kind, change in CHANGES.items():
        yield _changed(kind, change, turns, pool)
    yield _in_other_passages(turns)


def _changed(
    kind: str, change: Change, found: Iterable[Statement], pool: Material
) -> Iterator[Claim]:
    """Alternate between verbatim sentences and people's."""
    wants_verbatim = True
    held: dict[bool, list[Claim]] = {True: [], False: []}
    for one in found:
        chance = Random(draw(kind, one.document, one.text))
        material = replace(pool, evidence=_evidence(one.chunks))
        if (text := change(one.text, chance, material)) and text != one.text:
            held[one.verbatim].append(_claim(kind, one, text, is_true=False))
        while held[wants_verbatim]:
            yield held[wants_verbatim].pop(0)
            wants_verbatim = not wants_verbatim
    yield from chain.from_iterable(held.values())


@cache
def _evidence(chunks: tuple[Chunk, ...]) -> str:
    return "\n".join(f"{chunk.title}\n{chunk.text}" for chunk in chunks)


def _pool(verbatim: Sequence[Statement]) -> Material:
    found = verbatim[:1500]
    return Material(
        names=sorted({name[0] for one in found for name in changes.NAME.finditer(one.text)}),
        clauses=sorted({clause[0] for one in found for clause in _RELATIVE.finditer(one.text)}),
        sentences=[one.text for one in found if not one.text.startswith(("It ", "He ", "They "))],
        evidence="",
    )


def _in_other_passages(found: Sequence[Statement]) -> Iterator[Claim]:
    """Claims cited to another document: of any, or of one of the same origin and probably subject."""
    by_origin: dict[str, list[Statement]] = {}
    for one in sorted(found, key=lambda one: one.document):
        by_origin.setdefault(one.origin, []).append(one)
    for at, one in enumerate(found):
        near = by_origin[one.origin]
        place = near.index(one)
        others = near[place + 1 : place + 60] if at % 2 else near[draw(one.text) % len(near) :]
        other = next((each for each in others if each.document != one.document), None)
        if other:
            yield replace(_claim("other passage", one, is_true=False), chunks=other.chunks)


def _of_rows(source: Source) -> Iterator[Iterable[Claim]]:
    """Cells of tables, said of their row, and of another row."""
    true: list[Claim] = []
    false: list[Claim] = []
    for name, sections, title in statements.read_handbooks(source):
        for section in [one for one in sections if one.kind == "table"]:
            statement, others = _row_statement(source, name, title, section)
            if statement:
                true.append(_claim("table row", statement, is_true=True))
                false += [
                    _claim("another table row", statement, text, is_true=False) for text in others
                ]
    return iter((true, false))


def _row_statement(
    source: Source, name: str, title: str, table: Section
) -> tuple[Statement | None, list[str]]:
    rows = [
        [cell.strip() for cell in row.strip("| ").split("|")] for row in table.text.splitlines()
    ]
    head, body = rows[0], [row for row in rows[2:] if len(row) == len(rows[0]) and row[0]]
    column = len(head) - 1
    if len(body) < 2 or column < 1 or len({row[column] for row in body}) < len(body):
        return None, []
    row = body[draw(name, table.text) % len(body)]
    other = body[(body.index(row) + 1) % len(body)]
    wordy = all(
        3 < len(" ".join((head[column], one[0], one[column]))) < 150 for one in (row, other)
    )
    if (
        not wordy
        or "](" in row[0] + row[column] + other[column]
        or not row[column]
        or not other[column]
    ):
        return None, []
    chunks = source.cut(f"{name}#{draw(table.text)}", title, table)
    say = "The {} of {} is {}."
    statement = Statement(
        say.format(head[column], row[0], row[column]), chunks, "handbook", verbatim=False
    )
    return statement, [say.format(head[column], row[0], other[column])]


def _of_headings(source: Source) -> Iterator[Iterable[Claim]]:
    """Sentences under a heading that says what they are about, and under another."""
    true: list[Claim] = []
    false: list[Claim] = []
    for name, sections, title in statements.read_handbooks(source):
        headed = [
            (section.place.heading_path[-1], text)
            for section in sections
            if section.kind == "text" and len(section.place.heading_path) > 1
            for text in statements.sentences(section.text)[:1]
        ]
        chunks = source.cut(name, title, *sections[:40])
        for (heading, text), (other, _) in pairwise(headed[:3]):
            lower = text[0].lower() + text[1:]
            statement = Statement(f"For {heading}, {lower}", chunks, "handbook", verbatim=False)
            true.append(_claim("heading", statement, is_true=True))
            if other.lower() not in f"{heading} {text}".lower():
                false.append(
                    _claim("another heading", statement, f"For {other}, {lower}", is_true=False)
                )
    return iter((true, false))


def _of_speakers(source: Source) -> Iterator[Iterable[Claim]]:
    found = sorted(statements.read_speakers(source), key=lambda one: draw(one[0].text))
    true = [_claim("speaker", one, is_true=True) for one, _ in found]
    false = [
        _claim(
            "another speaker",
            one,
            f"{others[draw(one.text) % len(others)]} said{one.text.partition(' said')[2]}",
            is_true=False,
        )
        for one, others in found
    ]
    return iter((true, false))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--count", type=int, default=400)
    chosen = parser.parse_args()
    claims = make_claims(Source(chosen.data, minilm()), chosen.count)
    counts = Counter((claim.is_true, claim.kind) for claim in claims)
    examples = {claim.kind: claim.text for claim in claims}
    for (is_true, kind), count in sorted(counts.items(), reverse=True):
        print(f"{'true ' if is_true else 'false'} {count:5} {kind:32} {examples[kind]}")
    true = [claim for claim in claims if claim.is_true]
    print(f"true: {len(true)}, of which not verbatim {sum(not c.is_verbatim for c in true)}")


if __name__ == "__main__":
    main()
