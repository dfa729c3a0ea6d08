"""The markers of a text as those of Markdown's footnotes.

`[1, 2]` becomes `[^1][^2]`. Code stays as it is, and so do the cells of tables, which not every renderer looks for footnotes in: behind a
table a line of its own cites what its cells cite.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from markdown_it import MarkdownIt

from backend.chat.citations.marker_parser import Marker, split_markers
from backend.research.references.reference_markers import MarkerStyle

_PARSER = MarkdownIt("commonmark").enable("table")
_VERBATIM = ("fence", "code_block", "html_block")
_LINE_END = re.compile(r"\r\n?")
_CODE_OR_FOOTNOTE = re.compile(
    r"(?s)\\.|(?P<ticks>`+)(?!`).{0,300}?(?<!`)(?P=ticks)(?!`)|`+|(?P<footnote>\[\^)"
)
_PREFIX = re.compile(r"[ \t>]*")
_MAKES_LINK = ("(", ":")
"""Behind a marker, these would make a link or a definition of it."""


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Of which blocks the lines of a text are, counted from 0."""

    verbatim: frozenset[int]
    tables: Sequence[range]
    prose: Mapping[int, int]
    """Where the paragraph, heading or row that a line is of begins."""

    def find_table(self, line: int) -> range | None:
        return next((table for table in self.tables if line in table), None)


def write_footnote_markers(text: str, lead: str) -> str:
    """Return a Markdown text with `[^n]` for its markers; footnotes that it has itself are shown as they are written.

    Args:
        lead: what the numbers are that follow a table.
    """
    plain = _escape_footnotes(_LINE_END.sub("\n", text))
    blocks = _find_blocks(plain)
    cited: dict[range, dict[int, None]] = {table: {} for table in blocks.tables}
    parts: list[str] = []
    line, behind_marker = 0, False
    for piece in split_markers(plain):
        written = piece.text if isinstance(piece, Marker) else piece
        table = blocks.find_table(line)
        is_rewritten = isinstance(piece, Marker) and table is None and line not in blocks.verbatim
        if isinstance(piece, str):
            parts.append(f"\\{piece}" if behind_marker and piece.startswith(_MAKES_LINK) else piece)
        else:
            if table is not None:
                cited[table] |= dict.fromkeys(piece.numbers)
            parts.append(write_markers(piece.numbers) if is_rewritten else written)
        behind_marker = is_rewritten
        line += written.count("\n")
    return "\n".join(_cite_tables("".join(parts).split("\n"), cited, lead))


def write_markers(numbers: Iterable[int]) -> str:
    return "".join(map(MarkerStyle.FOOTNOTES.write, numbers))


def _find_blocks(text: str) -> _Blocks:
    tokens = [(token.type, range(*token.map)) for token in _PARSER.parse(text) if token.map]
    return _Blocks(
        frozenset(line for kind, lines in tokens if kind in _VERBATIM for line in lines),
        [lines for kind, lines in tokens if kind == "table_open"],
        {line: lines.start for kind, lines in tokens if kind == "inline" for line in lines},
    )


def _escape_footnotes(text: str) -> str:
    """Escape footnotes of the writer's own: their numbers would lead to our sources.

    Code in a line ends with its block.
    """
    blocks = _find_blocks(text)
    lines = enumerate(text.split("\n"))
    runs = groupby(lines, lambda one: blocks.prose.get(one[0], one[0]))
    joined = ((start, "\n".join(line for _, line in run)) for start, run in runs)
    return "\n".join(
        run if start in blocks.verbatim else _CODE_OR_FOOTNOTE.sub(_escape, run)
        for start, run in joined
    )


def _escape(found: re.Match[str]) -> str:
    return f"\\{found.group()}" if found["footnote"] else found.group()


def _cite_tables(
    lines: Sequence[str], cited: dict[range, dict[int, None]], lead: str
) -> Iterator[str]:
    behind = {table.stop - 1: numbers for table, numbers in cited.items() if numbers}
    for at, line in enumerate(lines):
        yield line
        if at in behind:
            prefix = _PREFIX.match(line)
            indent = prefix.group() if prefix else ""
            yield indent.rstrip()
            yield f"{indent}{lead} {write_markers(behind[at])}"
            if "".join(lines[at + 1 : at + 2]).strip(" \t>"):
                yield indent.rstrip()
