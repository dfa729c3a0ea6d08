"""What a token of an answer costs the citation processor, at 1k, 8k and 64k tokens.

    .venv/bin/python -m tests.benchmarks.citations

The last column is the cost of a token at 64k tokens as a multiple of that at 1k: flat is 1.
"""

import time
from collections.abc import Sequence

from backend.chat.citations.citation_processor import (
    CitationMode,
    CitedDocument,
    DynamicCitationProcessor,
)
from backend.chat.citations.citation_utils import collapse_citations

SIZES = (1_000, 8_000, 64_000)
REPEATS = 3
MAPPING = {n: CitedDocument(f"kb:{n}", f"Document {n}", f"https://x/{n}") for n in range(1, 10)}
ANSWERS = {
    "prose": [
        "Annual",
        " leave",
        " is",
        " 25",
        " days",
        " [1",
        "]",
        ".",
        " Sick",
        " pay",
        " [2]",
        ".\n",
    ],
    "code": ["```py\n", "x", "[1]", " = ", "`", "a", "`", "\n", "```\n", "and", " [2]", "\n"],
    "open brackets": ["["],
    "open links": ["[a]", "(b", " "],
    "stray backticks": ["`", " a", " ``", " b", "\n\n"],
    "one open backtick": ["`", *["word "] * 63],
    "long numbers": ["[", *["1"] * 63],
    "Chinese": ["年假", "为25天", "【1】", "。", "病假", "［2", "］", "。"],
}


def tokens(pattern: Sequence[str], count: int) -> list[str]:
    return (list(pattern) * (count // len(pattern) + 1))[:count]


def seconds(answer: Sequence[str], mode: CitationMode) -> float:
    processor = DynamicCitationProcessor(mode)
    processor.update_citation_mapping(MAPPING)
    start = time.thread_time()
    for token in answer:
        processor.process_token(token)
    processor.process_token(None)
    return time.thread_time() - start


def collapsing_seconds(answer: Sequence[str]) -> float:
    text = "".join(answer)
    start = time.thread_time()
    collapse_citations(text, MAPPING)
    return time.thread_time() - start


def row(name: str, best: Sequence[float]) -> str:
    each = [1e6 * spent / size for spent, size in zip(best, SIZES, strict=True)]
    cells = "".join(f"{cost:10.2f}" for cost in each)
    return f"{name:32}{cells}{each[-1] / each[0]:10.2f}"


def main() -> None:
    print(f"{'microseconds a token':32}" + "".join(f"{n:10,}" for n in SIZES) + "    64k/1k")
    for name, pattern in ANSWERS.items():
        answers = [tokens(pattern, size) for size in SIZES]
        for mode in CitationMode:
            best = [min(seconds(a, mode) for _ in range(REPEATS)) for a in answers]
            print(row(f"{name}, {mode.name.lower()}", best))
        best = [min(collapsing_seconds(a) for _ in range(REPEATS)) for a in answers]
        print(row(f"{name}, collapse_citations", best))


if __name__ == "__main__":
    main()
