"""How often the check of citations flags a Chinese sentence in which one number, date or name was changed.

    .venv/bin/python -m tests.benchmarks.chinese_facts [--data ../shared/data] [--count N]

Sentences of XQuAD (zh) and CMRC 2018, each cited to its own paragraph. A number in figures or in Chinese numerals becomes another one
that the paragraph does not have, a year, month or day of a date another one, and a name with a point between its parts, or in the
marks of titles, one of another paragraph. *True*: the same sentences unchanged, and with their numerals written in the other way.
Wanted: of changed numbers, of changed dates and of changed names 95 % flagged at least, of each kind of true ones 5 % at most; the
command exits with 1 where one is missed.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

from backend.chat.citations.evidence import split_passages
from backend.chat.citations.verification import Verdict, find_support
from connectors.document import Section
from indexing.chunking.chunk import split_sentences
from indexing.embedding.language_support import LanguageSupport, load_language_support
from indexing.runtime.deadline import Deadline
from tests.benchmarks.claims.statements import Source, Statement, draw
from tests.support.models import MODEL_CACHE, minilm

COUNT = 200
LEAST_FLAGGED, MOST_FALSE_ALARMS = 0.95, 0.05
FLAGS = {Verdict.WEAK, Verdict.UNSUPPORTED, Verdict.CONTRADICTED}
LENGTHS = range(12, 90)
CHANGED = {
    "numbers": ("number in figures", "number in numerals"),
    "dates": ("date",),
    "names": ("name with a point", "title"),
}
DIGITS = "零一二三四五六七八九"
_FIGURES = re.compile(
    r"(?<![\d.,:年月\-–A-Za-z])\d{1,3}(?:,\d{3})*(?:\.\d+)?(?![\d.,:年月日号\-–A-Za-z½])"
)
_NUMERAL = re.compile(
    r"(?<![一二三四五六七八九十百千万几数第])[二三四五六七八九](?=[个名位次座所条家年种场支人部届])(?!年代)"
)
_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?= ?年)")
_MONTH = re.compile(r"(?<!\d)\d{1,2}(?= ?月)")
_DAY = re.compile(r"(?<=月)(?<!\d)\d{1,2}(?= ?[日号])|(?<=月 )\d{1,2}(?= ?[日号])")
_POINTED = re.compile(r"[\u4e00-\u9fff]{1,6}(?:[·•・][\u4e00-\u9fff]{1,6})+")
_TITLE = re.compile(r"(?<=《)[^《》]{2,15}(?=》)")


@dataclass(frozen=True, slots=True)
class Case:
    kind: str
    is_true: bool
    statement: Statement
    text: str


def read_statements(source: Source) -> list[Statement]:
    rows = [
        (f"xquad:{row['_id']}", row["text"])
        for row in source.rows("xquad/corpus.jsonl.gz")
        if row["metadata"]["lang"] == "zh"
    ]
    rows += [
        (row["_id"], row["text"]) for row in islice(source.rows("cmrc2018/corpus.jsonl.gz"), 600)
    ]
    found = [one for name, text in rows for one in _read_sentences(source, name, text)]
    return sorted(found, key=lambda one: draw(one.document, one.text))


def _read_sentences(source: Source, name: str, text: str) -> Iterator[Statement]:
    chunks = source.cut(name, "", Section(text=text))
    for span in split_sentences(text):
        sentence = span.of(text).strip()
        if len(sentence) in LENGTHS and sentence.endswith("。"):
            yield Statement(sentence, chunks, name.partition(":")[0], verbatim=True)


def _evidence(statement: Statement) -> str:
    return "\n".join(chunk.text for chunk in statement.chunks)


def _put(text: str, found: re.Match[str], new: str) -> str:
    return text[: found.start()] + new + text[found.end() :]


def change_figures(one: Statement, chance: Random) -> str | None:
    found = [*_FIGURES.finditer(one.text)]
    if not found:
        return None
    place = chance.choice(found)
    amount = float(place[0].replace(",", ""))
    others = [f"{amount * by + 1:g}" for by in range(2, 40)]
    return _put(one.text, place, next(each for each in others if each not in _evidence(one)))


def change_numeral(one: Statement, chance: Random) -> str | None:
    found = [*_NUMERAL.finditer(one.text)]
    held = _evidence(one)
    others = [
        each
        for at, each in enumerate(DIGITS)
        if at > 2 and each not in held and str(at) not in held
    ]
    return _put(one.text, chance.choice(found), chance.choice(others)) if found and others else None


def change_date(one: Statement, chance: Random) -> str | None:
    held = _evidence(one)
    kinds = [
        (_YEAR, [str(year) for year in range(1850, 2020)]),
        (_MONTH, [str(month) for month in range(1, 13)]),
        (_DAY, [str(day) for day in range(1, 29)]),
    ]
    changes = [
        (place, [each for each in values if each not in held])
        for pattern, values in kinds
        for place in pattern.finditer(one.text)
    ]
    changes = [(place, values) for place, values in changes if values]
    if not changes:
        return None
    place, values = chance.choice(changes)
    return _put(one.text, place, chance.choice(values))


def make_name_change(
    pattern: re.Pattern[str], names: Sequence[str]
) -> Callable[[Statement, Random], str | None]:
    def change(one: Statement, chance: Random) -> str | None:
        found = [*pattern.finditer(one.text)]
        held = _evidence(one)
        others = [
            name for name in names if not any(part in held for part in re.split("[·•・]", name))
        ]
        return (
            _put(one.text, chance.choice(found), chance.choice(others))
            if found and others
            else None
        )

    return change


def keep(one: Statement, chance: Random) -> str | None:
    del chance
    return one.text


def write_numerals_otherwise(one: Statement, chance: Random) -> str | None:
    """A single figure as a numeral, or a numeral as a figure."""
    del chance
    if found := _NUMERAL.search(one.text):
        return _put(one.text, found, str(DIGITS.index(found[0])))
    if found := re.search(r"(?<![\d.,年月])[3-9](?= ?[个名位次座所条家种场支人部届])", one.text):
        return _put(one.text, found, DIGITS[int(found[0])])
    return None


def write_year_in_numerals(one: Statement, chance: Random) -> str | None:
    del chance
    found = _YEAR.search(one.text)
    written = "".join("〇一二三四五六七八九"[int(digit)] for digit in found[0]) if found else ""
    return _put(one.text, found, written) if found else None


def make_cases(statements: Sequence[Statement], count: int) -> Iterator[Case]:
    pointed = sorted({name for one in statements for name in _POINTED.findall(one.text)})
    titles = sorted({name for one in statements for name in _TITLE.findall(one.text)})
    kinds: Mapping[tuple[str, bool], Callable[[Statement, Random], str | None]] = {
        ("unchanged", True): keep,
        ("numerals in the other way", True): write_numerals_otherwise,
        ("year in numerals", True): write_year_in_numerals,
        ("number in figures", False): change_figures,
        ("number in numerals", False): change_numeral,
        ("date", False): change_date,
        ("name with a point", False): make_name_change(_POINTED, pointed),
        ("title", False): make_name_change(_TITLE, titles),
    }
    for (kind, is_true), change in kinds.items():
        made = (
            Case(kind, is_true, one, text)
            for one in statements
            if (text := change(one, Random(draw(kind, one.document, one.text))))
            and (text != one.text or kind == "unchanged")
        )
        yield from islice(made, count)


def is_flagged(case: Case, understanding: LanguageSupport) -> bool:
    passages = split_passages(case.statement.chunks)
    (support,) = find_support([(case.text, passages)], minilm(), understanding, Deadline.after(600))
    return support.verdict in FLAGS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument(
        "--show", type=int, default=0, help="print so many of each kind that are judged wrongly"
    )
    chosen = parser.parse_args()
    statements = read_statements(Source(chosen.data, minilm()))
    understanding = load_language_support(minilm(), MODEL_CACHE)
    flagged: dict[tuple[str, bool], list[bool]] = {}
    wrong: dict[str, list[Case]] = {}
    for case in make_cases(statements, chosen.count):
        is_wrong = is_flagged(case, understanding) == case.is_true
        flagged.setdefault((case.kind, case.is_true), []).append(is_wrong != (not case.is_true))
        if is_wrong:
            wrong.setdefault(case.kind, []).append(case)
    is_missed = False
    for (kind, is_true), judged in flagged.items():
        share = sum(judged) / len(judged)
        is_missed |= is_true and share > MOST_FALSE_ALARMS
        print(f"| {'true' if is_true else 'false'}: {kind} | {len(judged)} | {share:.1%} |")
        for case in wrong.get(kind, ())[: chosen.show]:
            print("   ", case.text, "<-", case.statement.text)
    for name, kinds in CHANGED.items():
        judged = [one for kind in kinds for one in flagged[kind, False]]
        share = sum(judged) / len(judged)
        is_missed |= share < LEAST_FLAGGED
        print(f"| **changed {name}** | {len(judged)} | {share:.1%} |")
    sys.exit(is_missed)


if __name__ == "__main__":
    main()
